"""What a file of a fork of Caffe must give: its rows, worked out by hand."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

Shape = tuple[int, ...]


class Row(Struct, frozen=True):
    """What a layer must be."""

    shape: Shape | None
    macs: int = 0
    params: int = 0
    status: str = "exact"


class Fork(Struct, frozen=True):
    """A file, how it is read, and the rows that it must have."""

    name: str
    text: str
    rows: dict[str, Row]
    options: dict[str, Any] = {}


def bound(shape: Shape, macs: int = 0, params: int = 0) -> Row:
    """A layer whose counts are a bound."""
    return Row(shape, macs, params, "estimate")


def unknown(shape: Shape | None = None) -> Row:
    """A layer that nothing counts."""
    return Row(shape, status="unknown")


IMAGE = 'input: "data" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8\n'
WIDE = 'input: "data" input_shape { dim: 1 dim: 8 dim: 6 dim: 4 }\n'
MAPS = 'input: "data" input_shape { dim: 2 dim: 4 dim: 6 dim: 6 }\n'
