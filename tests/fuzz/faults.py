"""Faults that the fuzz targets must find: each takes one check out of a reader."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """A change of one file under src/layerscope; `old` stands there once."""

    says: str
    file: str
    old: str
    new: str


FAULTS: dict[str, tuple[Fault, ...]] = {
    "prototxt": (
        Fault(
            "an endless number taken for a whole one", "codecs/message.py",
            "except (ValueError, OverflowError):\n"
            '            raise self._wrong(name, value, "a whole number") from None\n',
            "except ValueError:\n"
            '            raise self._wrong(name, value, "a whole number") from None\n',
        ),
        Fault(
            "a window without a size", "formats/caffe/windows.py",
            "        if default is None:\n"
            '            raise layer.error(f"no {name}", param)\n', "",
        ),
        Fault(
            "an escape that is not known", "codecs/message.py",
            "return ESCAPED_LETTERS.get(letter, letter)", "return ESCAPED_LETTERS[letter]",
        ),
    ),
    "builder": (
        Fault(
            "a variable that is not there", "formats/builder_calls.py",
            "        found = self.tensors.get(name)\n", "        found = self.tensors[name]\n",
        ),
        Fault(
            "a value of another type", "formats/builder_calls.py",
            "        if not parameter.accepts(value):\n", "        if False:\n",
        ),
        Fault(
            "an argument that is missing", "formats/builder_calls.py",
            "        if missing:\n", "        if False:\n",
        ),
    ),
    "protobuf": (
        Fault(
            "packed floats that end inside a number", "codecs/protobuf.py",
            "        if rest:\n", "        if rest < 0:\n",
        ),
        Fault(
            "the number of no enumeration's word", "codecs/schema.py",
            'field_type.words[value] if value < len(field_type.words) else ""',
            "field_type.words[value]",
        ),
        Fault(
            "a small message that ends behind a tag", "codecs/protobuf.py",
            "tag > 127 or tag < 8 or at + 1 >= size", "tag > 127 or tag < 8",
        ),
    ),
    "onnx": (
        Fault(
            "raw data of another length than the shape", "formats/onnx/tensors.py",
            "        if length != needed:\n", "        if length > needed:\n",
        ),
        Fault(
            "raw data without a dtype", "formats/onnx/tensors.py",
            "        if bits is None:\n"
            '            raise wire.error(stored.at, f"{_described(stored)} has no type")\n', "",
        ),
        Fault(
            "a model without a graph", "formats/onnx/skim.py",
            "    if span is None:\n        raise FormatError("
            'f"{wire.name}: no graph in it, this is no ONNX model")\n', "",
        ),
    ),
    "mat5": (
        Fault(
            "an array with fewer numbers than its sizes", "codecs/mat5.py",
            "if len(data) != size * array.elements:", "if len(data) > size * array.elements:",
        ),
        Fault(
            "cells nested without a limit", "codecs/mat5.py",
            "        if nested > MATLAB_DEPTH.most:\n"
            "            raise FormatError(MATLAB_DEPTH.refusal(nested))\n", "",
        ),
        Fault(
            "compressed data that ends too early", "codecs/mat5.py",
            "            if not self._ready and (self._zip.eof or not (packed or self._left)):\n",
            "            if self._ready and not (packed or self._left):\n",
        ),
    ),
    "safetensors": (
        Fault(
            "offsets beyond the end of the file", "formats/torch/checkpoints/stored_array.py",
            "if not 0 <= span.begin <= span.end <= size:", "if not 0 <= span.begin <= span.end:",
        ),
        Fault(
            "two arrays over the same bytes", "formats/torch/checkpoints/stored_array.py",
            "if span.begin < before.end and span.end > span.begin:",
            "if span.begin < before.begin and span.end > span.begin:",
        ),
        Fault(
            "an entry without offsets", "formats/torch/checkpoints/safetensors.py",
            "if dtype is None or entry.shape is None or entry.data_offsets is None:",
            "if dtype is None or entry.shape is None:",
        ),
    ),
    "gguf": (
        Fault(
            "offsets beyond the end of the file", "formats/torch/checkpoints/stored_array.py",
            "if not 0 <= span.begin <= span.end <= size:", "if not 0 <= span.begin <= span.end:",
        ),
        Fault(
            "two arrays over the same bytes", "formats/torch/checkpoints/stored_array.py",
            "if span.begin < before.end and span.end > span.begin:",
            "if span.begin < before.begin and span.end > span.begin:",
        ),
        Fault(
            "a type that ggml does not have", "formats/gguf.py",
            "    dtype = DTYPES.get(kind)\n", "    dtype = DTYPES[kind]\n",
        ),
    ),
    "pickle": (
        Fault(
            "a tensor of what is no storage", "formats/torch/checkpoints/pickled_tensors.py",
            "if len(args) < 4 or not isinstance(args[0], Storage):", "if len(args) < 4:",
        ),
        Fault(
            "a dict key that cannot be hashed", "codecs/pickles.py",
            "        if not isinstance(key, SCALARS):\n            key = OpaqueKey()\n", "",
        ),
        Fault(
            "keys of an old file that are no list", "formats/torch/checkpoints/torch_save.py",
            " or not isinstance(keys, list):", ":",
        ),
    ),
    "zip": (
        Fault(
            "compressed data that is damaged", "formats/torch/checkpoints/zip_archive.py",
            "OverflowError, struct.error, zlib.error,", "OverflowError, struct.error,",
        ),
        Fault(
            "a member compressed in another way", "formats/torch/checkpoints/zip_archive.py",
            "        elif info.compress_type != zipfile.ZIP_STORED:\n",
            "        elif info.compress_type < zipfile.ZIP_STORED:\n",
        ),
        Fault(
            "a storage that is not in the archive", "formats/torch/checkpoints/torch_save.py",
            "count = -1 if info is None else info.file_size", "count = info.file_size",
        ),
    ),
    "pt2": (
        Fault(
            "a tensor whose sizes are not told", "formats/torch/export_schema.py",
            "        meta = metas.get(name)\n", "        meta = metas[name]\n",
        ),
        Fault(
            "a parameter without its name", "formats/torch/exported_program.py",
            "                if not isinstance(full, str):\n                    raise FormatError("
            'f"{self.path}: {name}: a {kind} without its name")\n', "",
        ),
        Fault(
            "sizes that are no sizes", "formats/torch/export_schema.py",
            'return check_sizes(f"{self.path}: {short(name)}", (size,))[0]', "return size",
        ),
    ),
    "run_json": (
        Fault(
            "numbers above 2^63", "export/run_json.py",
            "    check_stored(msgspec.to_builtins(measurement), path)\n", "",
        ),
        Fault(
            "times that are not above 0", "export/run_json.py",
            "if value is not None and value <= 0:", "if value is not None and value < 0:",
        ),
        Fault(
            "JSON nested too deeply", "formats/documents.py",
            "    except RecursionError:\n"
            '        raise FormatError(f"{path}: JSON that is nested too deeply") from None\n', "",
        ),
    ),
    "hf_config": (
        Fault(
            "a model_type that is no text", "formats/config_file.py",
            '    if not isinstance(settings["model_type"], str):\n'
            '        raise FormatError(f"{path}: model_type is no text; {wanted}")\n', "",
        ),
        Fault(
            "JSON nested too deeply", "formats/config_file.py",
            "    except RecursionError:\n"
            '        raise FormatError(f"{path}: nested too deep; {wanted}") from None\n', "",
        ),
        Fault(
            "a size of the input below 1", "formats/torch/model_names/hugging_face.py",
            "if type(value) is not int or not 1 <= value <= MOST_INPUT:",
            "if type(value) is not int or value > MOST_INPUT:",
        ),
    ),
    "numbers": (
        Fault(
            "a quantity above 2^63 - 1", "report/quantities.py",
            "    if exact > MOST_SIZE:\n        raise NumberTooLarge(where, value)\n", "",
        ),
        Fault(
            "digits and separators read in many ways", "report/quantities.py",
            r'r"(?a)(\d+(?:[,_]\d+)*(?:\.\d+)?)\s*', r'r"(?a)((?:\d+[,_]?)+(?:\.\d+)?)\s*',
        ),
        Fault(
            "a size of 0", "report/quantities.py",
            "    if min(found) < 1:\n", "    if min(found) < 0:\n",
        ),
    ),
    "budget": (
        Fault(
            "a limit with decimals", "report/quantities.py",
            "    if isinstance(value, bool) or not isinstance(value, (int, str)):\n",
            "    if isinstance(value, bool):\n",
        ),
        Fault(
            "a value of another type", "report/budgets.py",
            "    if value is not None and not fits:\n", "    if value is None and not where:\n",
        ),
        Fault(
            "budgets that are no table", "report/budget_file.py",
            "        if not isinstance(value, dict):\n"
            '            raise UsageError(f"{file}: {key} is no table, expected {TABLE}")\n', "",
        ),
    ),
    "times": (
        Fault(
            "a time below 0", "report/quantities.py",
            "    if not (low <= number <= high or (zero and number == 0)):\n",
            "    if not number <= high:\n",
        ),
        Fault(
            "a time that is no number", "report/times_file.py",
            "        if not isinstance(value, _Number):\n", "        if value is None:\n",
        ),
        Fault(
            "a runtime of 0", "report/times_file.py",
            "            if not runtime:\n", "            if runtime is None:\n",
        ),
    ),
    "document": (
        Fault(
            "a row that is left out", "formats/document/assembly.py",
            "            self.nodes.append(replace(node, attributes=opaque))\n", "",
        ),
        Fault(
            "a batch of nothing", "formats/document/netscope.py",
            " and counted is not None and elements(shape):\n", " and counted is not None:\n",
        ),
        Fault(
            "a sheet without elements", "formats/document/sheet.py",
            " or counted is None or not elements(first.output):\n", " or counted is None:\n",
        ),
    ),
    "audit": (
        Fault(
            "a window that moves by 0", "sheets/shapes.py",
            "    if room < 0 or step < 1:\n", "    if room < 0:\n",
        ),
        Fault(
            "numbers of any length", "documents/figures.py",
            "    if len(digits) > LONGEST or abs(exponent) > EXPONENT:\n",
            "    if not digits:\n",
        ),
        Fault(
            "a total that is not there", "auditing/figure_equations.py",
            " or share.figure is None or not total:\n", " or share.figure is None:\n",
        ),
    ),
}  # fmt: skip
