"""Roles of stored arrays that uses leave open: learned, a buffer (statistic) or a constant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import isqrt
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from layerscope.codecs.protobuf import Wire
from layerscope.formats.onnx.dtypes import FLOATS
from layerscope.formats.onnx.skim import ModelProto
from layerscope.formats.onnx.tensor_info import Initializer
from layerscope.formats.onnx.tensors import StoredTensor, pairs
from layerscope.graph.types import Node, Param, elements

Verdict = Literal["learned", "statistic", "constant", ""]

# Metadata of torch.export on graph inputs, and of onnxscript on folded constants.
KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
FOLDED = "pkg.onnxscript.optimizer.folded_from"
VERDICTS: dict[str, Verdict] = {
    "PARAMETER": "learned",
    "BUFFER": "statistic",
    "CONSTANT_TENSOR": "constant",
}
QUOTED = re.compile(r"'([^']*)'")
# Names that torch gives to values: `onnx::Mul_12`, `12`, `val_12`, `/conv/Mul_output_0`.
VALUE = re.compile(r"onnx::\w+|\d+|val_\d+|/.*_output_\d+|_?tensor_constant\d*|lifted_tensor_\d+")
LITERAL = re.compile(r"/.*Constant(_\d+)?_output_\d+|_tensor_constant\d*|.*lifted_tensor_\d+")
# Names of values in functions of onnxscript, and of Python's operators.
COMPUTED = re.compile(r"val_\d+|(value|value_cast|shape|getitem|convert_element_type\w*)(_\d+)*")
NUMBER = re.compile(r"_\d+$")
MOST_BYTES = 1 << 24  # of an array whose numbers are looked at
CHUNK = 1 << 12


class ExporterInfo(Struct):
    """The exporter of a file, and its metadata on arrays, by name."""

    torch: bool = False
    exported: bool = False  # by torch.export rather than TorchScript
    verdicts: dict[str, Verdict] = {}
    folded: dict[str, tuple[str, ...]] = {}  # array -> names of what it was computed from

    def verdict(self, entry: Initializer) -> Verdict:
        """The role of an array by the metadata and its name; "" if they do not tell."""
        name = entry.name
        found = self.verdicts.get(name, "")
        if found or not self.torch:
            return found
        if entry.from_constant_node or entry.fill is not None or LITERAL.fullmatch(name):
            return "constant"  # a literal of the program: parameters are initializers
        if self.exported:
            return self._exported(name)
        scalar = elements(entry.shape) <= 1
        return "learned" if scalar and entry.first_use is not None and _of_a_module(entry) else ""

    def _exported(self, name: str) -> Verdict:
        sources = self.folded.get(name)
        if sources is None:  # rewritten weights keep the path of their module, constants have none
            return "" if "." in name else "constant"
        said = {self.verdicts.get(source, "") for source in sources}
        if "learned" in said:
            return "learned"
        gone = (source for source in sources if source not in self.verdicts)
        return "constant" if all(map(_is_value, gone)) else ""  # else maybe of a parameter


def _is_value(name: str) -> bool:
    """Whether a name is that of a computed value, not of a parameter or buffer."""
    if LITERAL.fullmatch(name):
        return True
    if "." in name:
        return False
    if COMPUTED.fullmatch(name):
        return True
    from layerscope.formats.torch.aten import CONSTANTS
    from layerscope.formats.torch.aten.table import CONVERTERS

    operator = NUMBER.sub("", name)  # `arange`, `add_12`: values have the names of operators
    return operator in CONVERTERS or operator in CONSTANTS


def _of_a_module(entry: Initializer) -> bool:
    return entry.dtype in FLOATS and not VALUE.fullmatch(entry.name)


def exporter_of(wire: Wire, model: ModelProto) -> ExporterInfo:
    """The exporter of a file, and its metadata on initializers."""
    origin = ExporterInfo(torch=model.producer == "pytorch")
    if not origin.torch:
        return origin
    values = model.graph.values
    for stored in model.graph.stored:
        value = values.get(stored.name)
        for key, text in pairs(wire, value.metadata) if value is not None else ():
            if key == KIND and text in VERDICTS:
                origin.verdicts[stored.name] = VERDICTS[text]
            elif key == FOLDED:
                origin.folded[stored.name] = tuple(QUOTED.findall(text))
    origin.exported = bool(origin.verdicts or origin.folded) or _says_export(wire, model)
    return origin


def _says_export(wire: Wire, model: ModelProto) -> bool:
    """Whether the first nodes have the metadata of torch.export's exporter."""
    first = (operator for operator in model.graph.nodes[:8] if operator.metadata)
    return any(
        key.startswith("pkg.torch.onnx") for each in first for key, _ in pairs(wire, each.metadata)
    )


# -- arrays that are not learned, by their numbers


def is_mask(wire: Wire, entry: Initializer) -> bool:
    """Whether an array is zeros and one other number below zero, as masks of attention are."""
    found: set[float] = set()
    for number in _numbers(wire, entry.source):
        found.add(number)
        if len(found) > 2:
            return False
    return len(found) == 2 and max(found) == 0


def is_one_filter(wire: Wire, entry: Initializer) -> bool:
    """Whether all channels have the same kernel, not of one number: a fixed filter."""
    stored = entry.source
    if stored is None or stored.data is None or len(entry.shape) < 3 or entry.shape[0] < 2:
        return False
    start, end = stored.data
    size = (end - start) // entry.shape[0]
    data = wire.data
    kernel = bytes(data[start : start + size])
    if bytes(data[start + size : start + 2 * size]) != kernel or end - start > MOST_BYTES:
        return False
    numbers = set(_numbers(wire, stored, size))
    return len(numbers) > 1 and bytes(data[start:end]) == kernel * entry.shape[0]


def offset_count(wire: Wire, entry: Initializer) -> int | None:
    """Number of parameters of a relative position bias before it was expanded; None if it is none.

    Expanded, it has one number for each pair of positions in a square window, and pairs at the
    same offset have the same one: (2 w - 1)^2 offsets in a window of w x w positions. Heads are
    before the pairs, or behind them.
    """
    shape = tuple([size for size in entry.shape if size > 1])
    pairs_last = len(shape) > 1 and shape[-1] == shape[-2]
    count = shape[-1] if pairs_last else isqrt(shape[0]) if len(shape) == 2 else shape[0]
    side, area = isqrt(count), count * count
    total = elements(shape)
    if side < 2 or side * side != count or total % area:
        return None
    numbers = [*_numbers(wire, entry.source)]
    if len(numbers) != total or len({*numbers}) < 2:
        return None
    wide = 2 * side - 1
    rows = [wide * (n // side) + n % side for n in range(count)]
    offsets = [here - there for here in rows for there in rows]
    heads = total // area
    for n in range(heads):
        table = numbers[n * area : (n + 1) * area] if pairs_last else numbers[n::heads]
        by_offset = dict(zip(offsets, table, strict=True))
        if table != [by_offset[offset] for offset in offsets]:
            return None
    return heads * wide * wide


def _numbers(wire: Wire, stored: StoredTensor | None, most: int = MOST_BYTES) -> Iterator[float]:
    """Numbers of an fp32 array that is stored in the file."""
    if stored is None or stored.data is None or stored.dtype != "fp32":
        return
    start, end = stored.data
    if end - start > MOST_BYTES:
        return
    end = min(end, start + most)
    for at in range(start, end, CHUNK):
        yield from memoryview(bytes(wire.data[at : min(at + CHUNK, end)])).cast("f")


# -- roles of all arrays


class _Undecided(Struct):
    """Arrays that the file does not classify, by what their numbers show."""

    fixed: list[Initializer] = []
    unsure: list[Initializer] = []
    expanded: list[Initializer] = []
    offsets: int = 0  # parameters of the expanded tables

    def notes(self, exporter: ExporterInfo) -> list[str]:
        """Notes on them for the report."""
        notes = []
        if self.fixed:
            listed = _listed(exporter, self.fixed)
            notes.append(f"masks and filters that are not learned, by their numbers: {listed}")
        if self.expanded:
            notes.append(
                f"position tables of {self.offsets:,} parameters are stored expanded and count as "
                f"stored: {_listed(exporter, self.expanded)}"
            )
        if self.unsure:
            notes.append(
                "the file does not tell whether these are learned, they count as parameters: "
                + _listed(exporter, self.unsure)
            )
        return notes


def decide(
    wire: Wire, exporter: ExporterInfo, entries: Sequence[Initializer], nodes: Sequence[Node]
) -> list[str]:
    """Set the role of every array, by the file's metadata and its uses; return notes."""
    # parameters of nodes -> op
    own = {param.storage: node.op for node in nodes for param in node.params or ()}
    learned = any(entry.learned and not entry.from_constant_node for entry in entries)
    found = _Undecided()
    for entry in entries:
        if entry.declared_role is not None or entry.role is None:
            continue
        verdict = _verdict(exporter, entry, entry.name in own) if learned else ""
        if verdict == "learned" and not entry.learned and entry.role != "statistic":
            entry.role, entry.mixed = entry.first_use or "weight", True
        elif verdict in ("constant", "statistic") and entry.learned:
            entry.role, entry.mixed = verdict, True
        elif entry.learned and not verdict:
            if _is_fixed(wire, entry, own.get(entry.name, "")):
                entry.role, entry.mixed = "constant", True
                found.fixed.append(entry)
            elif entry.name not in own and _is_table(entry):
                count = offset_count(wire, entry)
                (found.unsure if count is None else found.expanded).append(entry)
                found.offsets += count or 0
    return found.notes(exporter)


def _verdict(exporter: ExporterInfo, entry: Initializer, own: bool) -> Verdict:
    """The role that the file gives an array; `own`: it is a parameter of a node."""
    verdict = exporter.verdict(entry)
    if entry.from_constant_node and not verdict and not own:
        return "constant"  # added or multiplied: a mask, a table of angles, a grid
    return verdict


def _is_fixed(wire: Wire, entry: Initializer, op: str) -> bool:
    if not op:
        return _is_table(entry) and is_mask(wire, entry)
    depthwise = len(entry.shape) > 2 and entry.shape[1] == 1
    return op == "conv" and depthwise and is_one_filter(wire, entry)


def _is_table(entry: Initializer) -> bool:
    """Whether an array has more than one axis and its name is not that of a weight or bias."""
    own = entry.name.rpartition(".")[2]
    wide = sum([size > 1 for size in entry.shape]) > 1
    return wide and entry.role != "embedding" and "weight" not in own and "bias" not in own


def _listed(origin: ExporterInfo, entries: Sequence[Initializer]) -> str:
    names = []
    for entry in entries[:3]:
        sources = [name for name in origin.folded.get(entry.name, ()) if "." in name]
        names.append(f"{entry.name} (of {sources[0]})" if sources else entry.name)
    more = f" and {len(entries) - 3} more" if len(entries) > 3 else ""
    count = sum(elements(entry.shape) for entry in entries)
    return f"{', '.join(names)}{more} ({count:,} numbers)"


def with_roles(nodes: list[Node], entries: Sequence[Initializer]) -> list[Node]:
    """The nodes, where an array has the same role in all of them."""
    mixed = {entry.name: entry for entry in entries if entry.mixed and entry.role is not None}
    if not mixed:
        return nodes
    found = []
    for node in nodes:
        if node.params and not mixed.keys().isdisjoint([p.storage for p in node.params]):
            params = tuple([_with_role(p, mixed.get(p.storage)) for p in node.params])
            node = replace(node, params=params)
        found.append(node)
    return found


def _with_role(param: Param, entry: Initializer | None) -> Param:
    if entry is None or entry.role is None or entry.learned == param.learnable:
        return param
    return replace(param, role=entry.role)
