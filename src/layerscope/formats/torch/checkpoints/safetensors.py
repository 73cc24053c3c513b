"""Safetensors files and index files (weight_map): names, shapes and dtypes; needs no PyTorch."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Annotated, NoReturn

import msgspec
from msgspec import Meta, Struct

from layerscope.errors import FormatError
from layerscope.formats import HEAD_BYTES, ReadOptions
from layerscope.formats.documents import check_unique_keys, is_json, unique_object
from layerscope.formats.sources import file_inside
from layerscope.formats.torch.checkpoints.stored_array import (
    ByteSpan,
    StoredArray,
    array_bytes,
    check_name,
    check_sizes,
    check_spans,
    short,
)
from layerscope.formats.torch.checkpoints.torch_save import torch_save_arrays
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


class HeaderEntry(Struct, frozen=True, gc=False):
    """Header fields of one array; the entry of the metadata has none of them."""

    dtype: str = ""
    shape: tuple[Size, ...] | None = None
    data_offsets: tuple[Size, Size] | None = None


def recognise(head: bytes) -> bool:
    """Whether a file begins with the header length and JSON, or is an index of weight files."""
    if is_json(head):
        return b'"weight_map"' in head
    return head[8:10] == b'{"' and int.from_bytes(head[:8], "little") <= HEADER_BYTES.most


def read(path: str, options: ReadOptions) -> Graph:
    """Read the arrays of a file, or of all files in an index (safetensors or torch.save)."""
    try:
        with open(path, "rb") as file:
            indexed = is_json(file.read(HEAD_BYTES))
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from None
    return parameters_only(path, indexed_arrays(path) if indexed else safetensors_arrays(path))


class WeightIndex(Struct, frozen=True):
    """An index: the file of each array, and the bytes of all arrays if it states them."""

    weight_map: dict[str, str]
    metadata: object = None

    @property
    def total_size(self) -> int | None:
        """The stated bytes of all arrays."""
        stated = self.metadata.get("total_size") if isinstance(self.metadata, dict) else None
        return stated if type(stated) is int else None


def read_index(path: str) -> WeightIndex:
    """The index in a file."""
    try:
        INDEX_BYTES.check(os.path.getsize(path), path)
        with open(path, "rb") as file:
            data = file.read()
        index = msgspec.json.decode(data, type=WeightIndex)
    except (OSError, ValueError, RecursionError):
        raise FormatError(
            f"{path}: expected an index with a weight_map from names of arrays to names of files"
        ) from None
    check_unique_keys(data, path)
    INDEX_FILES.check(len(set(index.weight_map.values())), path)
    return index


def indexed_arrays(path: str) -> list[StoredArray]:
    """Arrays of all files of an index; an array that is in two files is refused."""
    files = set(read_index(path).weight_map.values())
    first: dict[str, str] = {}  # array -> the file it is in
    found: list[StoredArray] = []
    for name in sorted(files):
        each = file_inside(path, name)
        arrays_of = safetensors_arrays if name.endswith(".safetensors") else torch_save_arrays
        for array in arrays_of(each):
            if first.setdefault(array.name, name) != name:
                raise FormatError(
                    f"{path}: {short(array.name)} is both in {first[array.name]} and in {name}"
                )
            found.append(array)
    return found


def safetensors_arrays(path: str) -> list[StoredArray]:
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
    arrays: list[StoredArray] = []
    spans: list[ByteSpan] = []
    for name, entry in entries.items():
        dtype = DTYPES.get(entry.dtype)
        if dtype is None or entry.shape is None or entry.data_offsets is None:
            _refuse(path, name, entry)
        check_name(path, name)
        begin, end = entry.data_offsets
        if array_bytes(path, entry.shape, dtype) != end - begin:
            _refuse(path, name, entry)
        arrays.append(StoredArray(name, entry.shape, dtype))
        spans.append(ByteSpan(begin, end, name))
    check_spans(path, spans, whole - 8 - size)
    return arrays


def _refuse(path: str, name: str, entry: HeaderEntry) -> NoReturn:
    """Raise the error that fits an invalid entry."""
    where = f"{path}: {short(name)}"
    for field in FIELDS:
        if getattr(entry, field) in ("", None):
            raise FormatError(f"{where}: no {field}, expected {', '.join(FIELDS)}")
    dtype = DTYPES.get(entry.dtype)
    if dtype is None:
        names = ", ".join(DTYPES)
        raise FormatError(f"{where}: unknown dtype {short(entry.dtype)!r}, expected one of {names}")
    shape, (begin, end) = entry.shape or (), entry.data_offsets or (0, 0)
    count = array_bytes(where, shape, dtype)
    sizes = "x".join(map(str, shape)) or "1"
    raise FormatError(
        f"{where}: data_offsets {begin:,} to {end:,}, expected the {count:,} bytes of {sizes} "
        f"{entry.dtype}"
    )


def _entries(path: str, header: bytes) -> Mapping[str, HeaderEntry]:
    """Entries by name, without the metadata; a name or field that occurs twice is refused."""
    try:
        entries = msgspec.json.decode(header, type=dict[str, HeaderEntry])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _entries_one_by_one(path, header)
    entries.pop(METADATA, None)
    # JSON decoding drops duplicate keys. Each entry has every field once, so a higher count of
    # field names means a duplicate.
    plain = b"\\" not in header and header.count(f'"{METADATA}"'.encode()) < 2
    if plain and all(header.count(f'"{field}"'.encode()) == len(entries) for field in FIELDS):
        return entries
    return _entries_one_by_one(path, header)


def _entries_one_by_one(path: str, header: bytes) -> dict[str, HeaderEntry]:
    """The same without msgspec, with errors that name the array."""
    where = f"{path}: header"

    def number(digits: str) -> int:
        NUMBER_DIGITS.check(len(digits), where)
        return int(digits)

    try:
        entries = json.loads(
            header.decode("utf-8"), object_pairs_hook=unique_object(where), parse_int=number
        )
    except RecursionError:
        raise FormatError(f"{where}: nested too deep, expected objects of {FIELDS}") from None
    except ValueError as error:
        raise FormatError(f"{where} is no JSON, expected safetensors: {error}") from None
    if not isinstance(entries, dict):
        raise FormatError(f"{where} is {_json_type(entries)}, expected an object")
    entries.pop(METADATA, None)
    return {name: _entry(f"{path}: {short(name)}", entry) for name, entry in entries.items()}


def _entry(where: str, value: object) -> HeaderEntry:
    if not isinstance(value, dict):
        raise FormatError(f"{where}: an entry without dtype or shape: {_json_type(value)}")
    for field in FIELDS:
        if field not in value:
            raise FormatError(f"{where}: no {field}, expected {', '.join(FIELDS)}")
    dtype, shape, offsets = (value[field] for field in FIELDS)
    if not isinstance(dtype, str):
        raise FormatError(f"{where}: dtype is {_json_type(dtype)}, expected a string")
    if not isinstance(shape, list) or not isinstance(offsets, list) or len(offsets) != 2:
        raise FormatError(f"{where}: expected a list as shape and two numbers as data_offsets")
    begin, end = check_sizes(where, offsets, "data_offsets")
    return HeaderEntry(dtype, check_sizes(where, shape), (begin, end))


def _json_type(value: object) -> str:
    """The JSON type of a value."""
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    return "null" if value is None else kinds.get(type(value), "a number")
