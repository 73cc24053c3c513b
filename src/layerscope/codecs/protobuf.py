"""Protobuf's wire format, read field by field from mapped bytes without copying payloads."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from layerscope.codecs.seeking import FileBytes, bytes_of
from layerscope.errors import FormatError

# Wire types. LEN is length-delimited: strings, bytes, messages, packed scalars.
VARINT, FIXED64, LEN, GROUP, GROUP_END, FIXED32 = range(6)
Field = tuple[int, int, int, int]  # number, wire type, value (of VARINT) or start, end

MOST_FIELDS = 10_000_000  # some seconds; a large network has a hundred thousand
TOO_MANY = f"more than {MOST_FIELDS:,} fields and numbers, no network has"
MOST_TEXT = 1 << 20  # bytes of a string
MOST_NUMBER = (1 << 29) - 1  # largest field number
SMALL = 1 << 12  # bytes of a message that is copied and decoded at once
RELEASE_BYTES = 32 << 20  # of read pages that stay in memory


class Wire:
    """The bytes of a message, their name in errors, and how many more fields may be read."""

    __slots__ = ("_release_at", "data", "left", "name", "size")

    def __init__(self, data: FileBytes, name: str, most: int = MOST_FIELDS) -> None:
        self.data = data
        self.name = name
        self.size = len(data)
        self.left = most
        self._release_at = RELEASE_BYTES

    def error(self, at: int, what: str, fix: str | None = None) -> FormatError:
        """An error to raise, with a byte offset."""
        return FormatError(f"{self.name}: byte {at}: {what}")

    def line(self, at: int) -> int:
        """Always 0: binary data has no lines."""
        return 0

    def column(self, at: int) -> int:
        """Always 0: binary data has no columns."""
        return 0

    def position(self, at: int) -> str:
        """An offset as `byte 17`."""
        return f"byte {at}"

    def spend(self, at: int, fields: int) -> None:
        """Count fields against the limit; raise if there are too many."""
        self.left -= fields
        if self.left < 0:
            raise self.error(at, TOO_MANY)

    def fields(self, start: int = 0, end: int | None = None) -> Iterable[Field]:
        """Every field of the message between two offsets, in file order; payloads are not read."""
        end = self.size if end is None else end
        if end - start <= SMALL:
            found = self._small_message(start, end)
            if found is not None:
                return found
        return self._fields(start, end)

    def _small_message(self, start: int, end: int) -> list[Field] | None:
        """Decode a small message at once; None if it has long varints or other wire types."""
        data = self.data[start:end]
        found: list[Field] = []
        at, size = 0, end - start
        while at < size:
            tag = data[at]
            wire = tag & 7
            if tag > 127 or tag < 8 or at + 1 >= size:
                return None
            value = data[at + 1]
            at += 2
            if wire == LEN:
                if value > 127:
                    if at >= size or data[at] > 127:
                        return None
                    value += (data[at] << 7) - 128
                    at += 1
                if value > size - at:
                    return None
                found.append((tag >> 3, LEN, start + at, start + at + value))
                at += value
            elif wire == VARINT:
                if value > 127:
                    return None
                found.append((tag >> 3, VARINT, value, start + at))
            elif wire == FIXED32:
                if at + 3 > size:
                    return None
                found.append((tag >> 3, FIXED32, start + at - 1, start + at + 3))
                at += 3
            else:
                return None
        self.spend(start, len(found))
        return found

    def _fields(self, start: int, end: int) -> Iterator[Field]:
        data = self.data
        at = start
        if start + RELEASE_BYTES < self._release_at:  # fields around this message are read already
            self._release_at = start + RELEASE_BYTES
        while at < end:
            begin = at
            tag = data[at]
            at += 1
            if tag > 127:
                tag, at = self.varint(begin, end)
            number, wire = tag >> 3, tag & 7
            if not 0 < number <= MOST_NUMBER:
                raise self.error(begin, f"field number {number}, expected 1 to {MOST_NUMBER}")
            self.left -= 1
            if self.left < 0:
                raise self.error(begin, TOO_MANY)
            if wire in (VARINT, LEN):
                value = data[at] if at < end else 128
                if value < 128:  # one byte, as most are
                    at += 1
                elif at + 1 < end and data[at + 1] < 128:
                    value += (data[at + 1] << 7) - 128
                    at += 2
                else:
                    value, at = self.varint(at, end)
                if wire == VARINT:
                    yield number, wire, value, at
                    continue
            elif wire == FIXED32:
                value = 4
            elif wire == FIXED64:
                value = 8
            else:
                what = "a group" if wire in (GROUP, GROUP_END) else f"wire type {wire}"
                raise self.error(begin, f"{what} in field {number}, expected wire type 0, 1, 2, 5")
            if value > end - at:
                raise self.error(
                    begin, f"field {number} of {value} bytes, but only {end - at} are left"
                )
            yield number, wire, at, at + value
            at += value
            if at > self._release_at:
                self._release(at)

    def varint(self, at: int, end: int) -> tuple[int, int]:
        """The varint at an offset, and the offset behind it."""
        data = self.data
        begin = at
        value = shift = 0
        while at < end:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                if value >> 64:
                    raise self.error(begin, "a number of more than 64 bits")
                return value, at
            shift += 7
            if shift > 63:
                raise self.error(begin, "a number of more than 10 bytes")
        raise self.error(begin, "a number that is cut off")

    def varints(self, start: int, end: int) -> Iterator[int]:
        """The packed varints between two offsets."""
        while start < end:
            self.spend(start, 1)
            value, start = self.varint(start, end)
            yield value

    def floats(self, start: int, end: int, wide: bool = False) -> tuple[float, ...]:
        """The packed floats (doubles if `wide`) between two offsets."""
        size, code = (8, "d") if wide else (4, "f")
        count, rest = divmod(end - start, size)
        if rest:
            raise self.error(start, f"{end - start} bytes, expected a multiple of {size}")
        self.spend(start, count)
        return struct.unpack(f"<{count}{code}", self.data[start:end])

    def text(self, start: int, end: int) -> str:
        """The UTF-8 string between two offsets; invalid bytes are escaped."""
        if end - start > MOST_TEXT:
            raise self.error(start, f"a text of {end - start} bytes, expected at most {MOST_TEXT}")
        return self.data[start:end].decode("utf-8", "backslashreplace")

    def _release(self, at: int) -> None:
        """Release mapped pages that are read, so that memory does not grow with the file."""
        self._release_at = at + RELEASE_BYTES
        if isinstance(self.data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self.data.madvise(mmap.MADV_DONTNEED)


def signed(value: int) -> int:
    """A varint as int64, int32 or enum."""
    return value - (1 << 64) if value >> 63 else value


@contextmanager
def mapped(path: str) -> Iterator[Wire]:
    """A file as one message, memory-mapped where that does not copy it."""
    try:
        with open(path, "rb") as file, bytes_of(file) as data:
            yield Wire(data, path)
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror or error}") from None
