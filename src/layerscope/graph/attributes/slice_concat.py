"""Attributes of concatenation, splits, slices and crops."""

from __future__ import annotations

from msgspec import Struct


class Concat(Struct, frozen=True, gc=False):
    """Concatenation along one axis."""

    axis: int = 1


class Split(Struct, frozen=True, gc=False):
    """Split along one axis into `sizes`, of which one may be -1 for the rest.

    Without sizes: into `parts` of equal size.
    """

    axis: int
    sizes: tuple[int, ...] = ()
    parts: int = 0


class Slice(Struct, frozen=True, gc=False):
    """A range with a step on each named axis, with ends as in Python slices."""

    axes: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    steps: tuple[int, ...] = ()


class Crop(Struct, frozen=True, gc=False):
    """Crop of the first input to the sizes of the second from `axis` on."""

    axis: int = 2
    offsets: tuple[int, ...] = (0,)
    fits: bool = True  # False: no error if the first input is smaller
