"""Unique names, and shapes as text."""

from __future__ import annotations

from collections.abc import Container, Iterable

DOCUMENT_OP = "document."


def unique_name(name: str, taken: Container[str], separator: str = "_") -> str:
    """The name, with the first free number from 2 on appended if it is taken: `conv`, `conv_2`."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}{separator}{number}"
    return free


def unique_names(names: Iterable[str]) -> list[str]:
    """The names in order, each made unique by `unique_name`."""
    taken: set[str] = set()
    found = []
    for name in names:
        free = unique_name(name, taken)
        taken.add(free)
        found.append(free)
    return found


def shape_text(shape: Iterable[object] | None, scalar: str = "scalar") -> str:
    """A shape such as `1x3x224x224`; `scalar` without axes, `?` if it is unknown."""
    return "?" if shape is None else "x".join(map(str, shape)) or scalar


def document_op(kind: str) -> str:
    """The op of a row of a document that is not known to compute anything with a rule."""
    return DOCUMENT_OP + kind


def printed_type(op: str) -> str:
    """An op as tables name its type: that of a row of a document is the word of the document."""
    return op.removeprefix(DOCUMENT_OP)
