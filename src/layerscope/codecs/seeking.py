"""The bytes of a file read by seeking, where it cannot be mapped: in a browser."""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import BinaryIO, overload

PAGE_BYTES = 1 << 16
MOST_PAGES = 64
SEEKS = sys.platform == "emscripten"  # whose mmap copies the whole file


class SeekedBytes:
    """A file as a sequence of bytes, of which the last pages that were read are kept."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.size = file.seek(0, 2)
        self.pages: OrderedDict[int, bytes] = OrderedDict()

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, at: int) -> int: ...

    @overload
    def __getitem__(self, at: slice) -> bytes: ...

    def __getitem__(self, at: int | slice) -> int | bytes:
        if isinstance(at, int):
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
