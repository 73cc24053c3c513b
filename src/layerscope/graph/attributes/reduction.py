"""Attributes of reductions."""

from __future__ import annotations

from msgspec import Struct


class Reduce(Struct, frozen=True, gc=False):
    """Reduction over `axes` (all if empty), kept as axes of one if `keep`."""

    axes: tuple[int, ...] = ()
    keep: bool = False
    tail: bool = False  # over all axes from the given one on
