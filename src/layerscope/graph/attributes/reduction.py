"""Attributes of reductions and cumulative sums."""

from __future__ import annotations

from msgspec import Struct


class Reduce(Struct, frozen=True, gc=False):
    """Reduction over `axes` (all if empty), kept as axes of one if `keep`."""

    axes: tuple[int, ...] = ()
    keep: bool = False
    tail: bool = False  # over all axes from the given one on


class CumSum(Struct, frozen=True, gc=False):
    """Sums or products of all elements up to each along one axis."""

    axis: int = -1
