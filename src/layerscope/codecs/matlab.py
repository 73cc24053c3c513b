"""What MATLAB's files hold, as plain values: texts, cells, structs, and arrays by their shape."""

from __future__ import annotations

from msgspec import Struct

MOST_NUMBERS = 64  # an array of more is known by its shape alone: its numbers are never read
MOST_TEXT = 4096  # characters; a longer text is not read
BYTES_PER_VALUE = 8  # of a file: a larger one may have more values
NUMBERS_PER_VALUE = 16  # numbers that take the memory of one value


class Array(Struct, frozen=True):
    """Numbers: their shape, and if they are few the numbers themselves, column by column."""

    shape: tuple[int, ...]
    numbers: tuple[float, ...] | None = None

    @property
    def elements(self) -> int:
        """How many numbers there are."""
        count = 1
        for size in self.shape:
            count *= size
        return count


class Other(Struct, frozen=True):
    """What is no data: a function, an object of some class, a text too long to be a name."""

    kind: str


Value = str | Array | Other | list["Value"] | dict[str, "Value"]  # a list is a cell or structs
