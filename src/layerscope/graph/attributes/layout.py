"""Joins, cuts, new shapes, resampling, indices, number types."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from layerscope.graph.attributes.windows import Pads

Filling = Literal["constant", "reflect", "edge", "wrap"]
Sampling = Literal["nearest", "bilinear", "bicubic"]


class Concat(Struct, frozen=True, gc=False):
    """Joining along one axis."""

    axis: int = 1


class Split(Struct, frozen=True, gc=False):
    """Cutting along one axis into pieces of these sizes, one -1 taking what is left.

    Without sizes it is cut into `parts` of equal size.
    """

    axis: int
    sizes: tuple[int, ...] = ()
    parts: int = 0


class Slice(Struct, frozen=True, gc=False):
    """A range with a step on each named axis, ends as Python's slices take them."""

    axes: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    steps: tuple[int, ...] = ()


class Reshape(Struct, frozen=True, gc=False):
    """A new shape for the same elements; 0 keeps an axis, one -1 takes what is left.

    It takes the place of `axes` axes from `axis` on (-1: of all that are left); below zero `axis`
    counts from behind the last one.
    """

    shape: tuple[int, ...]
    axis: int = 0
    axes: int = -1


class Flatten(Struct, frozen=True, gc=False):
    """Merging the axes from `start` to `end` into one."""

    start: int = 1
    end: int = -1


class Permute(Struct, frozen=True, gc=False):
    """A new order of the axes."""

    order: tuple[int, ...]


class Pad(Struct, frozen=True, gc=False):
    """Elements added (or, below zero, cut) before and after each axis."""

    pads: Pads
    mode: Filling = "constant"


class Crop(Struct, frozen=True, gc=False):
    """Cutting the first input to the sizes of the second from `axis` on."""

    axis: int = 2
    offsets: tuple[int, ...] = (0,)
    fits: bool = True  # False: taken at its word even where there is too little to cut from


class Tile(Struct, frozen=True, gc=False):
    """So many copies one behind the other along one axis."""

    axis: int = 1
    times: int = 1


class Repeat(Struct, frozen=True, gc=False):
    """So many copies along every axis."""

    times: tuple[int, ...]


class Flip(Struct, frozen=True, gc=False):
    """The order of elements turned round along these axes."""

    axes: tuple[int, ...]


class ChannelShuffle(Struct, frozen=True, gc=False):
    """The channels of `groups` groups dealt out in turn."""

    groups: int


class Resize(Struct, frozen=True, gc=False):
    """Resampling the spatial axes to `size`, or by `scale` (numerator, denominator) per axis."""

    mode: Sampling = "nearest"
    size: tuple[int, ...] = ()
    scale: tuple[tuple[int, int], ...] = ()
    align_corners: bool = False


class Interp(Struct, frozen=True, gc=False):
    """Bilinear resampling, corner on corner, of what is left after cropping `crop` at both ends.

    To `size`, or each axis shrunk so that every n-th position stays, then zoomed so that n - 1 new
    positions stand between two. A second input gives its spatial size instead.
    """

    size: tuple[int, ...] = ()
    shrink: int = 1
    zoom: int = 1
    crop: tuple[int, int] = (0, 0)


class PixelShuffle(Struct, frozen=True, gc=False):
    """Moving blocks of `factor` x `factor` channels into space, or back with `inverse`."""

    factor: int
    inverse: bool = False


class Reduce(Struct, frozen=True, gc=False):
    """Reduction over `axes` (all if empty), kept as axes of one if `keep`."""

    axes: tuple[int, ...] = ()
    keep: bool = False
    tail: bool = False  # over all axes from the one named on


class CumSum(Struct, frozen=True, gc=False):
    """Sums or products of all elements up to each along one axis."""

    axis: int = -1


class Gather(Struct, frozen=True, gc=False):
    """Taking slices of one axis by index, or single elements along it if `elements`."""

    axis: int = 0
    elements: bool = False


class GatherND(Struct, frozen=True, gc=False):
    """Taking what stands at places that the last axis of the indices tells, behind `batch` axes."""

    batch: int = 0


class OneHot(Struct, frozen=True, gc=False):
    """A new axis of `depth` with one of them set for every index; `dtype` "" is the graph's own."""

    depth: int
    axis: int = -1
    dtype: str = ""


class Compress(Struct, frozen=True, gc=False):
    """Those slices of an axis that flags (second input) keep; without an axis, those elements."""

    axis: int | None = None


class Unique(Struct, frozen=True, gc=False):
    """Every slice of an axis, or element, once; of `outputs` the others are places and counts."""

    axis: int | None = None
    outputs: int = 1


class ReverseSequence(Struct, frozen=True, gc=False):
    """The first steps of every sequence turned round, as many as the second input tells."""

    batch_axis: int = 1
    time_axis: int = 0


Combining = Literal["", "mul", "max", "min", "mean"]


class Scatter(Struct, frozen=True, gc=False):
    """Writing updates (third input) into a copy of the first input at indices along `axis`.

    With `add` updates are added to what is there, or combined with it as `reduce` says.
    """

    axis: int = 0
    add: bool = False
    reduce: Combining = ""


class Expand(Struct, frozen=True, gc=False):
    """Repeating axes of one up to `shape`; 0 or -1 keeps an axis, -1 in front adds none."""

    shape: tuple[int, ...]


class TopK(Struct, frozen=True, gc=False):
    """The k largest along one axis, and where they are."""

    k: int
    axis: int = -1


class Quantize(Struct, frozen=True, gc=False):
    """Rounding to a narrow number type, or back from it."""

    dtype: str = "int8"
    per_channel: bool = False


class Cast(Struct, frozen=True, gc=False):
    """A change of number type."""

    dtype: str
