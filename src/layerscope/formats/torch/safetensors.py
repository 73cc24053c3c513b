"""Weights in safetensors files, and indices of weight files: names, shapes, dtypes; no PyTorch."""

from __future__ import annotations

import json
import os

from layerscope.errors import FormatError
from layerscope.formats import HEAD_BYTES, Options
from layerscope.formats.documents import is_json
from layerscope.formats.torch.pickled import stored_in
from layerscope.formats.torch.weights import Stored, parameters_only
from layerscope.graph.types import Graph

KINDS = {
    "F64": "fp64", "F32": "fp32", "F16": "fp16", "BF16": "bf16", "F8_E4M3": "fp8",
    "F8_E5M2": "fp8", "F8_E8M0": "fp8", "I64": "int64", "I32": "int32", "I16": "int16",
    "I8": "int8", "U8": "uint8", "U16": "int16", "U32": "int32", "U64": "int64", "BOOL": "bool",
    "C64": "complex64", "F4": "int4",
}  # fmt: skip
MOST_HEADER = 100_000_000  # bytes; the form's own limit


def recognise(head: bytes) -> bool:
    """Eight bytes of a length, then JSON; or an index of such files."""
    if is_json(head):
        return b'"weight_map"' in head
    return head[8:10] == b'{"' and int.from_bytes(head[:8], "little") <= MOST_HEADER


def read(path: str, options: Options) -> Graph:
    """The arrays of a file, or of all files that an index names: safetensors or of torch.save."""
    return parameters_only(path, _arrays(path))


def _arrays(path: str) -> list[Stored]:
    with open(path, "rb") as file:
        indexed = is_json(file.read(HEAD_BYTES))
    return _indexed(path) if indexed else _header(path)


def _indexed(path: str) -> list[Stored]:
    try:
        with open(path, encoding="utf-8") as file:
            files = sorted(set(json.load(file)["weight_map"].values()))
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        raise FormatError(f"{path}: expected an index with a weight_map") from None
    paths = [os.path.join(os.path.dirname(path), str(name)) for name in files]
    return [
        array
        for each in paths
        for array in (_header(each) if each.endswith(".safetensors") else stored_in(each))
    ]


def _header(path: str) -> list[Stored]:
    try:
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if not 2 <= size <= MOST_HEADER:
                raise FormatError(f"{path}: a header of {size} bytes, expected safetensors")
            told = json.loads(file.read(size))
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise FormatError(f"{path}: the header is no JSON, expected safetensors") from None
    found = []
    try:
        for name, array in told.items():
            if name != "__metadata__":
                kind = KINDS.get(array["dtype"], "")
                if not kind:
                    raise FormatError(f"{path}: {name}: unknown number type {array['dtype']!r}")
                found.append(Stored(name, tuple(map(int, array["shape"])), kind))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise FormatError(f"{path}: an entry without dtype or shape") from None
    return found
