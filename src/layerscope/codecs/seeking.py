"""The bytes of a file without reading all of it: mapped, or by seeking in a browser."""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from typing import BinaryIO, overload

PAGE_BYTES = 1 << 16
MOST_PAGES = 64
SEEKS = sys.platform == "emscripten"  # whose mmap copies the whole file


class SeekedBytes:
    """A file as a sequence of bytes, of which the last pages that were read are kept."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file = file
        self.size = size
        self.pages: OrderedDict[int, bytes] = OrderedDict()

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, at: int) -> int: ...

    @overload
    def __getitem__(self, at: slice) -> bytes: ...

    def __getitem__(self, at: int | slice) -> int | bytes:
        if isinstance(at, int):
            if not -self.size <= at < self.size:
                raise IndexError(at)
            number, rest = divmod(at if at >= 0 else at + self.size, PAGE_BYTES)
            return self._page(number)[rest]
        start, stop, step = at.indices(self.size)
        if step != 1:
            raise ValueError("bytes of a file with a step")
        if stop <= start:
            return b""
        first, last = start // PAGE_BYTES, (stop - 1) // PAGE_BYTES
        if last - first >= MOST_PAGES:
            self.file.seek(start)
            return self.file.read(stop - start)
        found = b"".join([self._page(number) for number in range(first, last + 1)])
        return found[start - first * PAGE_BYTES : stop - first * PAGE_BYTES]

    def find(self, part: bytes, start: int, end: int | None = None) -> int:
        """The offset of a single byte between two offsets; -1 if it is not there."""
        end = self.size if end is None else min(end, self.size)
        while start < end:
            page, rest = divmod(start, PAGE_BYTES)
            at = self._page(page).find(part, rest, rest + end - start)
            if at >= 0:
                return page * PAGE_BYTES + at
            start += PAGE_BYTES - rest
        return -1

    def _page(self, number: int) -> bytes:
        page = self.pages.get(number)
        if page is None:
            self.file.seek(number * PAGE_BYTES)
            page = self.pages[number] = self.file.read(PAGE_BYTES)
            if len(self.pages) > MOST_PAGES:
                self.pages.popitem(last=False)
        else:
            self.pages.move_to_end(number)
        return page


FileBytes = bytes | mmap | SeekedBytes


@contextmanager
def bytes_of(file: BinaryIO, most: int | None = None) -> Iterator[FileBytes]:
    """The first `most` bytes of a file, or all; memory-mapped where that does not copy them."""
    size = os.fstat(file.fileno()).st_size
    cut = most if most is not None and most < size else 0  # 0: all of the file
    if not size:  # which cannot be mapped
        yield b""
    elif SEEKS:
        yield SeekedBytes(file, cut or size)
    else:
        with mmap(file.fileno(), cut, access=ACCESS_READ) as data:
            yield data
