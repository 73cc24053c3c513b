"""Typed getters for fields of MatConvNet's structs, with errors that name the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from layerscope.codecs.matlab import MatArray, MatValue
from layerscope.errors import FormatError
from layerscope.graph.attributes import Pads

MOST_SIZE = 2**31  # of an integer field
Fields = Mapping[str, MatValue]


class MatLayer(Struct, frozen=True):
    """A layer of a SimpleNN or DagNN; `arrays` are its weights, None where one is missing."""

    name: str
    kind: str  # type in the file: conv, dagnn.Conv
    fields: Fields
    arrays: tuple[MatArray | None, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    params: tuple[str, ...] = ()  # names of the arrays, in a DagNN

    def array(self, n: int) -> MatArray | None:
        """The n-th array; None if it is missing or empty."""
        found = self.arrays[n] if n < len(self.arrays) else None
        return found if found is not None and found.elements else None


def items(value: MatValue | None) -> list[MatValue]:
    """The items of a cell or struct array; a struct is a list of one, any other value of none."""
    if isinstance(value, list):
        return value
    return [value] if isinstance(value, dict) else []


def struct(value: MatValue | None) -> dict[str, MatValue]:
    """A struct, or the first of a struct array; empty for any other value."""
    if isinstance(value, list):
        value = value[0] if value else None
    return value if isinstance(value, dict) else {}


def text(fields: Fields, name: str, default: str = "") -> str:
    """A string field, `default` if it is missing or empty."""
    value = fields.get(name)
    return value.strip() if isinstance(value, str) and value.strip() else default


def texts(value: MatValue | None) -> tuple[str, ...]:
    """The strings of a cell array, or a single string."""
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(part for part in items(value) if isinstance(part, str))


def numbers(fields: Fields, *names: str) -> tuple[float, ...]:
    """The numbers of the first field that has any."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, MatArray) and value.numbers:
            return value.numbers
    return ()


def number(fields: Fields, name: str, default: float) -> float:
    """The first number of a field."""
    found = numbers(fields, name)
    return found[0] if found else default


def flag(fields: Fields, name: str, default: bool) -> bool:
    """A logical field."""
    return bool(number(fields, name, default))


def whole(values: Sequence[float], what: str) -> tuple[int, ...]:
    """Numbers as integers of at least 0."""
    for value in values:
        if not 0 <= value <= MOST_SIZE or value != int(value):
            raise FormatError(f"{what} {value:g}, expected a whole number from 0 on")
    return tuple(int(value) for value in values)


def pair(fields: Fields, *names: str, default: int = 1) -> tuple[int, int]:
    """Height and width from one number or two."""
    found = whole(numbers(fields, *names) or (default,), names[0])
    if len(found) > 2:
        raise FormatError(f"{names[0]} of {len(found)} numbers, expected 1 or 2")
    return found[0], found[-1]


def margins(fields: Fields, name: str) -> Pads:
    """Padding of height and width from one number, two, or four (top, bottom, left, right)."""
    found = whole(numbers(fields, name) or (0,), name)
    if len(found) not in (1, 2, 4):
        raise FormatError(f"{name} of {len(found)} numbers, expected 1, 2 or 4")
    if len(found) < 4:
        found = (found[0], found[0], found[-1], found[-1])
    return (found[0], found[1]), (found[2], found[3])


def four(sizes: Sequence[int]) -> tuple[int, int, int, int]:
    """The four sizes of filters, with the trailing sizes of 1 that MATLAB leaves out."""
    full = (*sizes, 1, 1, 1, 1)
    if any(size != 1 for size in full[4:]):
        raise FormatError(f"filters of {len(sizes)} axes, expected 4: {tuple(sizes)}")
    return full[0], full[1], full[2], full[3]
