"""Reads MAT-files of version 5 to 7. Of large arrays only the shape is kept."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Protocol

from layerscope.codecs.matlab import (
    BYTES_PER_VALUE,
    MOST_NUMBERS,
    MOST_TEXT,
    NUMBERS_PER_VALUE,
    MatArray,
    MatOpaque,
    MatValue,
)
from layerscope.errors import FormatError
from layerscope.limits import MATLAB_DEPTH, MATLAB_VALUES, UNPACKED_BYTES, UNPACKED_RATIO, Limit

HEADER_BYTES = 128
MATRIX, COMPRESSED = 14, 15  # miMATRIX, miCOMPRESSED
# Data types (miINT8 …) -> struct codes and encodings.
NUMBERS = {1: "b", 2: "B", 3: "h", 4: "H", 5: "i", 6: "I", 7: "f", 9: "d", 12: "q", 13: "Q"}
ENCODINGS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
# Array classes (mxCELL_CLASS …).
CELL, STRUCT, OBJECT, CHAR, SPARSE, DOUBLE, UINT64, FUNCTION, OPAQUE = 1, 2, 3, 4, 5, 6, 15, 16, 17
OPAQUE_CLASSES = {OBJECT: "object", FUNCTION: "function", OPAQUE: "object"}
STEP_BYTES = 1 << 18  # decompressed at a time


class ByteStream(Protocol):
    """Bytes that are read in order; `at` is the offset."""

    at: int

    def read(self, count: int) -> bytes:
        """Read exactly `count` bytes."""

    def skip(self, count: int) -> None:
        """Skip `count` bytes."""


class FileStream:
    """The bytes of a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = file.seek(0, 2)
        self.at = 0
        file.seek(0)

    def read(self, count: int) -> bytes:
        """Read exactly `count` bytes."""
        data = self._file.read(count) if count <= self.size - self.at else b""
        if len(data) < count:
            raise FormatError(f"byte {self.at}: {count} bytes expected, the file ends before")
        self.at += count
        return data

    def skip(self, count: int) -> None:
        """Skip `count` bytes."""
        if count > self.size - self.at:
            raise FormatError(f"byte {self.at}: {count} bytes expected, the file ends before")
        self.at = self._file.seek(self.at + count)


class InflatedStream:
    """The bytes of a compressed element, decompressed in steps."""

    def __init__(self, source: FileStream, count: int, before: int, most: Limit) -> None:
        self.at = 0
        self._source, self._left = source, count
        self._before, self._most = before, most
        self._start = source.at
        self._zip = zlib.decompressobj()
        self._ready, self._used = b"", 0  # decompressed bytes, and how many of them are read

    def read(self, count: int) -> bytes:
        """Read exactly `count` bytes."""
        begin = self._used
        if count <= len(self._ready) - begin:  # most of the time
            self.at += count
            self._used = begin + count
            return self._ready[begin : begin + count]
        parts = []
        for size in self._pieces(count):
            parts.append(self._ready[self._used : self._used + size])
            self._used += size
        return b"".join(parts)

    def skip(self, count: int) -> None:
        """Skip `count` bytes."""
        if count <= len(self._ready) - self._used:
            self.at += count
            self._used += count
            return
        for size in self._pieces(count):
            self._used += size

    def _pieces(self, count: int) -> Iterator[int]:
        """Sizes of the pieces in which `count` bytes become available."""
        self.at += count
        self._most.check(
            self._before + self.at, f"byte {self._start}: decompresses to more than the limit"
        )
        while count:
            if self._used == len(self._ready):
                self._inflate_more()
            size = min(count, len(self._ready) - self._used)
            yield size
            count -= size

    def _inflate_more(self) -> None:
        self._ready, self._used = b"", 0
        while not self._ready:
            packed = self._zip.unconsumed_tail
            if not packed and self._left:
                packed = self._source.read(min(self._left, STEP_BYTES))
                self._left -= len(packed)
            try:
                self._ready = self._zip.decompress(packed, STEP_BYTES)
            except zlib.error as error:
                raise FormatError(f"byte {self._start}: cannot be decompressed: {error}") from None
            if not self._ready and (self._zip.eof or not (packed or self._left)):
                raise FormatError(
                    f"byte {self._start}: decompresses to fewer bytes than its elements have"
                )


def load(path: str, ignored: frozenset[str] = frozenset()) -> dict[str, MatValue]:
    """The variables of a file by name; struct fields named in `ignored` are skipped."""
    try:
        with open(path, "rb") as file:
            return _Mat5Reader(FileStream(file), ignored).variables()
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror or error}") from None
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None


class _Mat5Reader:
    """Reads one file; counts values and decompressed bytes against the limits."""

    def __init__(self, source: FileStream, ignored: frozenset[str]) -> None:
        self.source, self.ignored = source, ignored
        self.most = MATLAB_VALUES.at_least(source.size // BYTES_PER_VALUE)
        self.values = 0
        self.most_bytes = UNPACKED_BYTES.at_least(UNPACKED_RATIO.most * source.size)
        self.unpacked = 0
        head = source.read(HEADER_BYTES)
        self.order = {b"IM": "<", b"MI": ">"}.get(head[126:128], "")
        if not self.order or self.unpack("H", head[124:126])[0] >> 8 != 1:
            raise FormatError("no MATLAB file of version 5 to 7.3")

    def unpack(self, code: str, data: bytes) -> tuple[int, ...]:
        return struct.unpack(f"{self.order}{code}", data)

    def variables(self) -> dict[str, MatValue]:
        found: dict[str, MatValue] = {}
        source = self.source
        while source.at < source.size:
            kind, count, _ = self.tag(source)
            end = source.at + count
            if kind == MATRIX:
                name, value = self.matrix(source, count, 0)
                found[name] = value
            elif kind == COMPRESSED:
                inner = InflatedStream(source, count, self.unpacked, self.most_bytes)
                kind, count, _ = self.tag(inner)
                if kind == MATRIX:
                    name, value = self.matrix(inner, count, 0)
                    found[name] = value
                self.unpacked += inner.at
            source.skip(end - source.at)
        return found

    def spend(self, count: int) -> None:
        """Count values; raise where there are too many for the size of the file."""
        self.values += count
        if self.values > self.most.most:
            raise FormatError(self.most.refusal(self.values))

    def tag(self, at: ByteStream) -> tuple[int, int, bytes | None]:
        """Type and length of the next element; of a small data element also its data."""
        head = at.read(8)
        kind, count = self.unpack("II", head)
        if kind >> 16:
            kind, count = kind & 0xFFFF, kind >> 16
            if count > 4:
                raise FormatError(f"a short element of {count} bytes, expected at most 4")
            return kind, count, head[4 : 4 + count]
        return kind, count, None

    def element(self, at: ByteStream, most: int) -> tuple[int, bytes | None]:
        """Type and data of the next element; None as data of more than `most` bytes."""
        kind, count, data = self.tag(at)
        if data is not None:
            return kind, data
        data = at.read(count) if count <= most else None
        at.skip(-count % 8 + (count if data is None else 0))
        return kind, data

    def integers(self, at: ByteStream, what: str) -> tuple[int, ...]:
        kind, data = self.element(at, 4 * MOST_NUMBERS)
        if data is None or kind not in (5, 6) or len(data) % 4 or not data:
            raise FormatError(f"no {what} where they should be")
        return self.unpack(f"{len(data) // 4}{NUMBERS[kind]}", data)

    def matrix(self, at: ByteStream, count: int, nested: int) -> tuple[str, MatValue]:
        """Name and value of the next array, which has `count` bytes."""
        self.spend(1)
        if nested > MATLAB_DEPTH.most:
            raise FormatError(MATLAB_DEPTH.refusal(nested))
        if not count:
            return "", MatArray((0, 0), ())
        end = at.at + count
        kind = self.integers(at, "flags")[0] & 0xFF
        name, value = self.named(at, kind, nested)
        if at.at > end:
            raise FormatError(f"a value of {count} bytes that holds more")
        at.skip(end - at.at)
        return name, value

    def named(self, at: ByteStream, kind: int, nested: int) -> tuple[str, MatValue]:
        if kind in OPAQUE_CLASSES:
            return "", MatOpaque(OPAQUE_CLASSES[kind])
        shape = self.integers(at, "sizes")
        if min(shape) < 0 or len(shape) < 2:
            raise FormatError(f"an array of sizes {shape}")
        name = (self.element(at, MOST_TEXT)[1] or b"").decode("utf-8", "replace")
        return name, self.value(at, kind, shape, nested)

    def value(self, at: ByteStream, kind: int, shape: tuple[int, ...], nested: int) -> MatValue:
        array = MatArray(shape)
        if kind in (CELL, STRUCT) and self.values + array.elements > self.most.most:
            raise FormatError(self.most.refusal(self.values + array.elements))
        if kind == CELL:
            return [self.inside(at, nested) for _ in range(array.elements)]
        if kind == STRUCT:
            return self.structs(at, array.elements, nested)
        if kind == CHAR:
            return self.text(at, shape)
        if DOUBLE <= kind <= UINT64:
            return self.numbers(at, array) if array.elements <= MOST_NUMBERS else array
        return array if kind == SPARSE else MatOpaque("value")

    def inside(self, at: ByteStream, nested: int, wanted: bool = True) -> MatValue:
        kind, count, _ = self.tag(at)
        if kind != MATRIX:
            raise FormatError(f"an element of kind {kind} in a cell or struct, expected {MATRIX}")
        if wanted:
            return self.matrix(at, count, nested + 1)[1]
        at.skip(count)
        return MatOpaque("ignored")

    def structs(self, at: ByteStream, count: int, nested: int) -> MatValue:
        width = self.integers(at, "lengths of names")[0]  # of each field name, padded
        data = self.element(at, MOST_TEXT * MOST_NUMBERS)[1]
        if data is None or not 0 < width <= MOST_TEXT or len(data) % width:
            raise FormatError("a struct without the names of its fields")
        parts = [data[n : n + width] for n in range(0, len(data), width)]
        names = [part.split(b"\0")[0].decode("utf-8", "replace") for part in parts]
        self.spend(count)
        structs: list[MatValue] = []
        for _ in range(count):
            one: dict[str, MatValue] = {}
            for name in names:
                value = self.inside(at, nested, name not in self.ignored)
                if name not in self.ignored:
                    one[name] = value
            structs.append(one)
        return structs[0] if count == 1 else structs

    def text(self, at: ByteStream, shape: tuple[int, ...]) -> MatValue:
        kind, data = self.element(at, MOST_TEXT)
        if data is None or (shape[0] > 1 and len(data) > 1):
            return MatOpaque("text")
        code = ENCODINGS.get(kind)
        if code is None:
            raise FormatError(f"a text of kind {kind}")
        if code in ("utf-16", "utf-32"):
            code += "-le" if self.order == "<" else "-be"
        return data.decode(code, "replace")

    def numbers(self, at: ByteStream, array: MatArray) -> MatArray:
        kind, data = self.element(at, 8 * MOST_NUMBERS)
        if data is None or kind not in NUMBERS:
            raise FormatError(f"an array of kind {kind}")
        size = struct.calcsize(f"<{NUMBERS[kind]}")
        self.spend(array.elements // NUMBERS_PER_VALUE)
        if len(data) != size * array.elements:
            raise FormatError(f"{len(data)} bytes for {array.elements} numbers of {size}")
        return MatArray(array.shape, self.unpack(f"{array.elements}{NUMBERS[kind]}", data))
