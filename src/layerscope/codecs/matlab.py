"""Values of MAT-files: strings, cell arrays, structs, and numeric arrays by their shape."""

from __future__ import annotations

from msgspec import Struct

MOST_NUMBERS = 64  # elements of an array whose numbers are read; of larger ones only the shape
MOST_TEXT = 4096  # characters of a string; a longer one is not read
BYTES_PER_VALUE = 8  # a large file may have one value for so many of its bytes
NUMBERS_PER_VALUE = 16  # numbers that count as one value


class MatArray(Struct, frozen=True):
    """The shape of a numeric array, and of a small one its numbers in column-major order."""

    shape: tuple[int, ...]
    numbers: tuple[float, ...] | None = None

    @property
    def elements(self) -> int:
        """Number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count


class MatOpaque(Struct, frozen=True):
    """A value that is not decoded: a function, an object of a class, a long string."""

    kind: str


# A list is a cell array or a struct array, a dict one struct.
MatValue = str | MatArray | MatOpaque | list["MatValue"] | dict[str, "MatValue"]
