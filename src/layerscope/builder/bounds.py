"""Bounds of what the Builder takes: every size is a whole number of at most 2^63 - 1."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import get_args, get_origin

from msgspec import Struct
from msgspec.structs import fields

from layerscope.errors import ShapeError
from layerscope.limits import ARRAY_RANK, MOST_SIZE, plain


def check_shape(where: str, shape: Iterable[int]) -> tuple[int, ...]:
    """A shape as a tuple of integers; only the analysis knows which sizes may be 0."""
    found = tuple(shape)
    if len(found) > ARRAY_RANK.most:
        raise ShapeError(f"{where}: {ARRAY_RANK.refusal(len(found))}")
    for size in found:
        _check(where, "", size, True)
    return found


def check_attributes(where: str, attributes: Struct) -> None:
    """Raise for a number beyond 2^63 - 1, or one that is not whole where a whole one is meant."""
    for name, whole in _wholes(type(attributes)):
        _check(where, name, getattr(attributes, name), whole)


@cache
def _wholes(kind: type[Struct]) -> tuple[tuple[str, bool], ...]:
    """The fields of attributes, and whether each is of integers; at most one entry per class."""
    return tuple((field.name, _is_whole(field.type)) for field in fields(kind))


def _is_whole(kind: object) -> bool:
    """Whether a field is of integers, alone or in tuples."""
    if get_origin(kind) is tuple:
        return all(_is_whole(part) for part in get_args(kind) if part is not Ellipsis)
    return kind is int


def _check(where: str, name: str, value: object, whole: bool) -> None:
    if isinstance(value, int):
        if not -MOST_SIZE <= value <= MOST_SIZE:
            raise ShapeError(
                f"{_where_and_name(where, name)} {plain(value)}, expected at most 2^63 - 1"
            )
    elif isinstance(value, (tuple, list)):
        for part in value:
            _check(where, name, part, whole)
    elif isinstance(value, Struct):
        check_attributes(_where_and_name(where, name), value)
    elif whole:
        raise ShapeError(f"{_where_and_name(where, name)} {value!r:.80}, expected a whole number")


def _where_and_name(where: str, name: str) -> str:
    return f"{where}: {name}" if name else where
