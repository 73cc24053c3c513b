"""Weights in safetensors files, and indices of weight files: names, shapes, dtypes; no PyTorch."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import Meta, Struct

from layerscope.errors import FormatError
from layerscope.formats import HEAD_BYTES, ReadOptions
from layerscope.formats.documents import check_unique_keys, is_json, unique_object
from layerscope.formats.sources import file_inside
from layerscope.formats.torch.pickled import stored_in
from layerscope.formats.torch.stored import (
    Span,
    Stored,
    array_bytes,
    check_name,
    check_sizes,
    check_spans,
    short,
)
from layerscope.formats.torch.weights import parameters_only
from layerscope.graph.types import Graph
from layerscope.limits import (
    HEADER_BYTES,
    INDEX_BYTES,
    INDEX_FILES,
    MOST_SIZE,
    NUMBER_DIGITS,
)

DTYPES = {
    "F64": "fp64", "F32": "fp32", "F16": "fp16", "BF16": "bf16", "F8_E4M3": "fp8",
    "F8_E5M2": "fp8", "F8_E8M0": "fp8", "F8_E4M3FNUZ": "fp8", "F8_E5M2FNUZ": "fp8", "F4": "fp4",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "U16": "uint16",
    "U32": "uint32", "U64": "uint64", "BOOL": "bool", "C64": "complex64",
}  # fmt: skip
METADATA = "__metadata__"
FIELDS = ("dtype", "shape", "data_offsets")
Size = Annotated[int, Meta(ge=0, le=MOST_SIZE)]


class Entry(Struct, frozen=True, gc=False):
    """What a header says of one array; the entry of the metadata has none of the fields."""

    dtype: str = ""
    shape: tuple[Size, ...] | None = None
    data_offsets: tuple[Size, Size] | None = None


def recognise(head: bytes) -> bool:
    """Eight bytes of a length, then JSON; or an index of such files."""
    if is_json(head):
        return b'"weight_map"' in head
    return head[8:10] == b'{"' and int.from_bytes(head[:8], "little") <= HEADER_BYTES.most


def read(path: str, options: ReadOptions) -> Graph:
    """The arrays of a file, or of all files that an index names: safetensors or of torch.save."""
    try:
        with open(path, "rb") as file:
            indexed = is_json(file.read(HEAD_BYTES))
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from None
    return parameters_only(path, _indexed(path) if indexed else stored_arrays(path))


def _indexed(path: str) -> list[Stored]:
    """Arrays of all files of an index; an array in two of them is refused."""
    INDEX_BYTES.check(os.path.getsize(path), path)
    try:
        with open(path, "rb") as file:
            data = file.read()
        index = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        files = set(msgspec.json.decode(index["weight_map"], type=dict[str, str]).values())
    except (OSError, ValueError, KeyError, RecursionError):
        raise FormatError(
            f"{path}: expected an index with a weight_map from names of arrays to names of files"
        ) from None
    check_unique_keys(data, path)
    INDEX_FILES.check(len(files), path)
    first: dict[str, str] = {}  # array -> the file it is in
    found: list[Stored] = []
    for name in sorted(files):
        each = file_inside(path, name)
        for array in stored_arrays(each) if name.endswith(".safetensors") else stored_in(each):
            if first.setdefault(array.name, name) != name:
                raise FormatError(
                    f"{path}: {short(array.name)} is both in {first[array.name]} and in {name}"
                )
            found.append(array)
    return found


def stored_arrays(path: str) -> list[Stored]:
    """Names, shapes and dtypes of the arrays in a safetensors file."""
    try:
        with open(path, "rb") as file:
            whole = os.fstat(file.fileno()).st_size
            size = int.from_bytes(file.read(8), "little")
            if size < 2 or whole < 10:
                raise FormatError(f"{path}: a header of {size} bytes, expected safetensors")
            if size > whole - 8:
                raise FormatError(
                    f"{path}: a header of {size:,} bytes in a file of {whole:,}; is it cut short?"
                )
            HEADER_BYTES.check(size, path)
            header = file.read(size)
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from None
    entries = _entries(path, header)
    arrays: list[Stored] = []
    spans: list[Span] = []
    for name, entry in entries.items():
        dtype = DTYPES.get(entry.dtype)
        if dtype is None or entry.shape is None or entry.data_offsets is None:
            _refuse(path, name, entry)
        check_name(path, name)
        begin, end = entry.data_offsets
        if array_bytes(path, entry.shape, dtype) != end - begin:
            _refuse(path, name, entry)
        arrays.append(Stored(name, entry.shape, dtype))
        spans.append(Span(begin, end, name))
    check_spans(path, spans, whole - 8 - size)
    return arrays


def _refuse(path: str, name: str, entry: Entry) -> NoReturn:
    where = f"{path}: {short(name)}"
    for field in FIELDS:
        if getattr(entry, field) in ("", None):
            raise FormatError(f"{where}: no {field}, expected {', '.join(FIELDS)}")
    dtype = DTYPES.get(entry.dtype)
    if dtype is None:
        known = ", ".join(DTYPES)
        raise FormatError(f"{where}: unknown dtype {short(entry.dtype)!r}, expected one of {known}")
    shape, (begin, end) = entry.shape or (), entry.data_offsets or (0, 0)
    count = array_bytes(where, shape, dtype)
    sizes = "x".join(map(str, shape)) or "1"
    raise FormatError(
        f"{where}: data_offsets {begin:,} to {end:,}, expected the {count:,} bytes of {sizes} "
        f"{entry.dtype}"
    )


def _entries(path: str, header: bytes) -> Mapping[str, Entry]:
    """Entries by name, without the metadata; a name or a field that stands twice is refused."""
    try:
        entries = msgspec.json.decode(header, type=dict[str, Entry])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _slowly(path, header)
    entries.pop(METADATA, None)
    # Every entry spells its fields once, so more of them are of an entry that stands twice.
    plain = b"\\" not in header and header.count(f'"{METADATA}"'.encode()) < 2
    if plain and all(header.count(f'"{field}"'.encode()) == len(entries) for field in FIELDS):
        return entries
    return _slowly(path, header)


def _slowly(path: str, header: bytes) -> dict[str, Entry]:
    """The same, key by key, with errors that name the array."""
    where = f"{path}: header"

    def number(digits: str) -> int:
        NUMBER_DIGITS.check(len(digits), where)
        return int(digits)

    try:
        told = json.loads(
            header.decode("utf-8"), object_pairs_hook=unique_object(where), parse_int=number
        )
    except RecursionError:
        raise FormatError(f"{where}: nested too deep, expected objects of {FIELDS}") from None
    except ValueError as error:
        raise FormatError(f"{where} is no JSON, expected safetensors: {error}") from None
    if not isinstance(told, dict):
        raise FormatError(f"{where} is {_json(told)}, expected an object")
    told.pop(METADATA, None)
    return {name: _entry(f"{path}: {short(name)}", entry) for name, entry in told.items()}


def _entry(where: str, told: Any) -> Entry:
    if not isinstance(told, dict):
        raise FormatError(f"{where}: an entry without dtype or shape: {_json(told)}")
    for field in FIELDS:
        if field not in told:
            raise FormatError(f"{where}: no {field}, expected {', '.join(FIELDS)}")
    dtype, shape, offsets = (told[field] for field in FIELDS)
    if not isinstance(dtype, str):
        raise FormatError(f"{where}: dtype is {_json(dtype)}, expected a text")
    if not isinstance(shape, list) or not isinstance(offsets, list) or len(offsets) != 2:
        raise FormatError(f"{where}: expected a list as shape and two numbers as data_offsets")
    begin, end = check_sizes(where, offsets, "data_offsets")
    return Entry(dtype, check_sizes(where, shape), (begin, end))


def _json(told: Any) -> str:
    """What kind of value JSON has, in its own words."""
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    return "null" if told is None else kinds.get(type(told), "a number")
