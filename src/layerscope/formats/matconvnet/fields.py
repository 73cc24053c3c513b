"""Fields of MatConvNet's structs as numbers, texts and lists, with errors that name the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from layerscope.codecs.matlab import Array, Value
from layerscope.errors import FormatError
from layerscope.graph.attributes import Pads

MOST_SIZE = 2**31
Fields = Mapping[str, Value]


class Layer(Struct, frozen=True):
    """A layer of either wrapper; `arrays` are its weights in order, None where there is none."""

    name: str
    kind: str  # the file's word for it: conv, dagnn.Conv
    fields: Fields
    arrays: tuple[Array | None, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    params: tuple[str, ...] = ()  # names of the arrays; only DagNN has them

    def array(self, n: int) -> Array | None:
        """The n-th of its arrays; None if it has none or an empty one."""
        found = self.arrays[n] if n < len(self.arrays) else None
        return found if found is not None and found.elements else None


def items(value: Value | None) -> list[Value]:
    """A cell or several structs as a list, one struct as a list of one, else nothing."""
    if isinstance(value, list):
        return value
    return [value] if isinstance(value, dict) else []


def struct(value: Value | None) -> dict[str, Value]:
    """A struct, empty if it is none; of several the first."""
    if isinstance(value, list):
        value = value[0] if value else None
    return value if isinstance(value, dict) else {}


def text(fields: Fields, name: str, default: str = "") -> str:
    """A text, `default` if there is none."""
    value = fields.get(name)
    return value.strip() if isinstance(value, str) and value.strip() else default


def texts(value: Value | None) -> tuple[str, ...]:
    """The texts of a cell, or a text alone."""
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(part for part in items(value) if isinstance(part, str))


def numbers(fields: Fields, *names: str) -> tuple[float, ...]:
    """The numbers of the first of these fields that has any."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, Array) and value.numbers:
            return value.numbers
    return ()


def number(fields: Fields, name: str, default: float) -> float:
    """One number."""
    found = numbers(fields, name)
    return found[0] if found else default


def flag(fields: Fields, name: str, default: bool) -> bool:
    """A logical."""
    return bool(number(fields, name, default))


def whole(values: Sequence[float], what: str) -> tuple[int, ...]:
    """The numbers as integers, none below 0."""
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
    """Begin and end of height and width from one number, two or four: top, bottom, left, right."""
    found = whole(numbers(fields, name) or (0,), name)
    if len(found) not in (1, 2, 4):
        raise FormatError(f"{name} of {len(found)} numbers, expected 1, 2 or 4")
    if len(found) < 4:
        found = (found[0], found[0], found[-1], found[-1])
    return (found[0], found[1]), (found[2], found[3])


def four(sizes: Sequence[int]) -> tuple[int, int, int, int]:
    """Sizes of a bank of filters with the trailing ones that MATLAB leaves out."""
    full = (*sizes, 1, 1, 1, 1)
    if any(size != 1 for size in full[4:]):
        raise FormatError(f"filters of {len(sizes)} axes, expected 4: {tuple(sizes)}")
    return full[0], full[1], full[2], full[3]
