"""GGUF files of llama.cpp: metadata and arrays with their types; no weight is read."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from math import prod
from typing import BinaryIO

from msgspec import Struct

from layerscope.errors import FormatError
from layerscope.formats import ReadOptions
from layerscope.formats.torch.checkpoints.stored_array import (
    ByteSpan,
    StoredArray,
    check_elements,
    check_name,
    check_spans,
    short,
)
from layerscope.formats.torch.weights import parameters_only
from layerscope.graph.block_dtypes import BLOCK_DTYPES, GGML_DTYPES, PLAIN
from layerscope.graph.types import Graph, Shape, storage_bytes
from layerscope.limits import HEADER_BYTES, MOST_SIZE

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DTYPES = {number: PLAIN.get(name, name) for name, _, _, number in GGML_DTYPES}
NUMBERS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q",
    12: "<d",
}  # fmt: skip
TEXT, LIST = 8, 9
MOST_AXES = 4  # GGML_MAX_DIMS
ALIGNMENT = 32
NOTE = "a GGUF file has no operations: parameters only"
Value = int | float | bool | str | None  # None: a list, which is skipped


class GgufFile(Struct, frozen=True):
    """Metadata without lists, and the arrays of a file."""

    metadata: dict[str, Value]
    arrays: list[StoredArray]


def recognise(head: bytes) -> bool:
    """Whether a file begins with the magic bytes of GGUF."""
    return head.startswith(MAGIC)


def read(path: str, options: ReadOptions) -> Graph:
    """The arrays of a file, by module."""
    found = gguf_file(path)
    parts = found.metadata.get("split.count")
    note = NOTE
    if isinstance(parts, int) and parts > 1:
        note = f"{NOTE}, and only those of this file, one of {parts}"
    return parameters_only(path, found.arrays, f"{note}; {stored_types(found.arrays)}")


def stored_types(arrays: Sequence[StoredArray]) -> str:
    """The parameters and bytes of each type of arrays, the largest first."""
    counts: dict[str, tuple[int, int]] = {}
    for array in arrays:
        numbers, size = counts.get(array.dtype, (0, 0))
        more = storage_bytes(prod(array.shape), array.dtype)
        counts[array.dtype] = numbers + prod(array.shape), size + more
    listed = sorted(counts.items(), key=lambda each: -each[1][1])
    total = sum(size for _, size in counts.values())
    parts = (f"{name}: {numbers:,} in {size:,} bytes" for name, (numbers, size) in listed)
    return f"parameters by type, {total:,} bytes in all: {'; '.join(parts)}"


class HeaderReader:
    """Reads the header of a file, and raises where it ends too early or is too long."""

    def __init__(self, file: BinaryIO, path: str, size: int) -> None:
        self.file, self.path, self.size = file, path, size
        self.position = 0

    def take(self, count: int, what: str) -> bytes:
        """The next bytes."""
        self._advance(count, what)
        data = self.file.read(count)
        if len(data) < count:
            raise self._short(what)
        return data

    def skip(self, count: int, what: str) -> None:
        """Skip bytes."""
        self._advance(count, what)
        self.file.seek(count, os.SEEK_CUR)

    def number(self, kind: str, what: str) -> int:
        """The next whole number."""
        found: int
        (found,) = struct.unpack(kind, self.take(struct.calcsize(kind), what))
        return found

    def text(self, what: str) -> str:
        """The next text, which its length precedes."""
        data = self.take(self.number("<Q", what), what)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise FormatError(f"{self.path}: {what} is no UTF-8") from None

    def value(self, kind: int, what: str, depth: int = 0) -> Value:
        """The next value of metadata; lists are skipped."""
        if kind in NUMBERS:
            form = NUMBERS[kind]
            found: Value
            (found,) = struct.unpack(form, self.take(struct.calcsize(form), what))
            return found
        if kind == TEXT:
            return self.text(what)
        if kind != LIST or depth > 1:
            raise FormatError(f"{self.path}: {what} of type {kind}, expected 0 to 12")
        inner, count = self.number("<I", what), self.number("<Q", what)
        if inner in NUMBERS:
            self.skip(count * struct.calcsize(NUMBERS[inner]), what)
            return None
        self._check(8 * count, what)  # each item has a length of eight bytes at least
        for _ in range(count):
            if inner == TEXT:
                self.skip(self.number("<Q", what), what)
            else:
                self.value(inner, what, depth + 1)
        return None

    def _advance(self, count: int, what: str) -> None:
        self._check(count, what)
        self.position += count
        HEADER_BYTES.check(self.position, self.path)

    def _check(self, count: int, what: str) -> None:
        if self.position + count > self.size:
            raise self._short(what)

    def _short(self, what: str) -> FormatError:
        return FormatError(
            f"{self.path}: ends in {what}, after {self.position:,} of {self.size:,} bytes; is it "
            "cut short?"
        )


def gguf_file(path: str) -> GgufFile:
    """The metadata and arrays of a file."""
    try:
        with open(path, "rb") as file:
            return _read(HeaderReader(file, path, os.fstat(file.fileno()).st_size))
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from None


def _read(reader: HeaderReader) -> GgufFile:
    path = reader.path
    if reader.take(4, "the magic bytes") != MAGIC:
        raise FormatError(f"{path}: no GGUF file")
    version = reader.number("<I", "the version")
    if version not in VERSIONS:
        swapped = version == int.from_bytes(VERSIONS[-1].to_bytes(4, "big"), "little")
        what = "is big-endian" if swapped else f"has version {version}"
        raise FormatError(f"{path}: {what}, expected version 2 or 3, little-endian")
    count, pairs = (reader.number("<Q", "the counts") for _ in range(2))
    metadata: dict[str, Value] = {}
    for _ in range(pairs):
        key = reader.text("a key of the metadata")
        if key in metadata:
            raise FormatError(f"{path}: duplicate key {short(key)!r} in the metadata")
        kind = reader.number("<I", short(key))
        metadata[key] = reader.value(kind, short(key))
    arrays: list[StoredArray] = []
    spans: list[ByteSpan] = []
    names: set[str] = set()
    for _ in range(count):
        array, begin, size = _array(reader)
        if array.name in names:
            raise FormatError(f"{path}: two arrays are named {short(array.name)!r}")
        names.add(array.name)
        arrays.append(array)
        spans.append(ByteSpan(begin, begin + size, array.name))
    check_spans(path, spans, reader.size - _aligned(reader.position, metadata, path))
    return GgufFile(metadata, arrays)


def _aligned(position: int, metadata: dict[str, Value], path: str) -> int:
    """Where the data begins, behind the header."""
    step = metadata.get("general.alignment", ALIGNMENT)
    if type(step) is not int or step < 1:
        raise FormatError(f"{path}: general.alignment {step!r}, expected a whole number from 1")
    return -(-position // step) * step


def _array(reader: HeaderReader) -> tuple[StoredArray, int, int]:
    """The next array with its offset and its bytes."""
    name = reader.text("the name of an array")
    check_name(reader.path, name)
    where = f"{reader.path}: {short(name)}"
    axes = reader.number("<I", short(name))
    if axes > MOST_AXES:
        raise FormatError(f"{where}: {axes} axes, expected at most {MOST_AXES}")
    sizes = [reader.number("<Q", short(name)) for _ in range(axes)]
    if any(size > MOST_SIZE for size in sizes):
        raise FormatError(f"{where}: a size above 2^63 - 1")
    shape: Shape = tuple(reversed(sizes))  # ggml lists the axis of rows first
    kind = reader.number("<I", short(name))
    dtype = DTYPES.get(kind)
    if dtype is None:
        raise FormatError(f"{where}: type {kind}, which is none of ggml's: {_listed()}")
    count = check_elements(where, shape)
    block = BLOCK_DTYPES.get(dtype, (1, 1))[0]
    if shape and shape[-1] % block:
        raise FormatError(
            f"{where}: rows of {shape[-1]} in {dtype}, expected a multiple of {block}"
        )
    offset = reader.number("<Q", short(name))
    return StoredArray(name, shape, dtype), offset, storage_bytes(count, dtype)


def _listed() -> str:
    return ", ".join(f"{number} {name}" for name, _, _, number in GGML_DTYPES)
