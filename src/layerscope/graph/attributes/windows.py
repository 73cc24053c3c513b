"""What slides over an input, and the layers that do."""

from __future__ import annotations

from math import prod
from typing import Literal

from msgspec import Struct

from layerscope.errors import ShapeError

Rounding = Literal["floor", "ceil", "caffe", "torch"]
Pads = tuple[tuple[int, int], ...]
Same = Literal["same_upper", "same_lower"]


class Window(Struct, frozen=True, gc=False):
    """A sliding window of any rank, shared by convolution, pooling and the receptive field.

    `rounding` says what a position that only partly fits does: `floor` drops it, `ceil` keeps it,
    `caffe` keeps it unless it starts in the end padding of a padded input, `torch` keeps it unless
    it starts past the input and its begin padding, padded or not.
    """

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pads: Pads | Same
    dilation: tuple[int, ...]
    rounding: Rounding = "floor"

    def __post_init__(self) -> None:
        rank = len(self.kernel)
        if not rank:
            raise ShapeError("a window needs at least one axis")
        for what, values in (("stride", self.stride), ("dilation", self.dilation)):
            if len(values) != rank:
                raise ShapeError(f"{what} {values} has {len(values)} axes, the kernel {rank}")
        if not isinstance(self.pads, str) and len(self.pads) != rank:
            raise ShapeError(f"pads {self.pads} have {len(self.pads)} axes, the kernel {rank}")
        for what, values in (
            ("kernel size", self.kernel),
            ("stride", self.stride),
            ("dilation", self.dilation),
        ):
            if min(values) < 1:
                raise ShapeError(f"{what} {min(values)}, expected at least 1")
        if not isinstance(self.pads, str) and min(map(min, self.pads)) < 0:
            raise ShapeError(f"pads {self.pads}, expected none below 0")

    @property
    def rank(self) -> int:
        """Number of axes it slides along."""
        return len(self.kernel)

    @property
    def positions(self) -> int:
        """Input positions under one placement, padding included."""
        return prod(self.kernel)

    @property
    def extents(self) -> tuple[int, ...]:
        """Input length one placement spans, dilation included."""
        return tuple([(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True)])

    def resolve(self, sizes: tuple[int, ...]) -> Pads:
        """Begin and end padding per axis for an input of these sizes."""
        if not isinstance(self.pads, str):
            return self.pads
        pads = []
        for size, extent, step in zip(sizes, self.extents, self.stride, strict=True):
            total = max((-(-size // step) - 1) * step + extent - size, 0)
            less = total // 2
            pads.append((less, total - less) if self.pads == "same_upper" else (total - less, less))
        return tuple(pads)

    def slide(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Number of placements per axis on an input of these sizes."""
        if len(sizes) != len(self.kernel):
            raise ShapeError(
                f"a window of {len(self.kernel)} axes over {len(sizes)} spatial axes {sizes}"
            )
        pads = self.resolve(sizes)
        rounding = self.rounding
        clips = rounding == "torch" or (rounding == "caffe" and any(map(any, pads)))
        counts = []
        for size, (begin, end), extent, step in zip(
            sizes, pads, self.extents, self.stride, strict=True
        ):
            room = size + begin + end - extent
            count = (room if rounding == "floor" else room + step - 1) // step + 1
            if count < 1:
                padded_to = tuple(s + b + e for s, (b, e) in zip(sizes, pads, strict=True))
                raise ShapeError(
                    f"kernel {_times(self.extents)} does not fit input {_times(sizes)} "
                    f"padded to {_times(padded_to)}"
                )
            if clips and (count - 1) * step >= size + begin:
                count -= 1
            counts.append(count)
        return tuple(counts)


def _times(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))


class Conv(Struct, frozen=True, gc=False):
    """Convolution; the input's channels are read from its shape."""

    window: Window
    out_channels: int
    groups: int = 1
    bias: bool = True


class DeformConv(Struct, frozen=True, gc=False):
    """Convolution of samples at places that the second input moves, weighted by a third.

    Offsets are N x (offset_groups · positions · 2) x out, weights N x (offset_groups · positions) x
    out.
    """

    window: Window
    out_channels: int
    groups: int = 1
    bias: bool = True
    offset_groups: int = 1


class TransposedConv(Struct, frozen=True, gc=False):
    """Transposed convolution; the window is that of the convolution it transposes."""

    window: Window
    out_channels: int
    groups: int = 1
    bias: bool = True
    output_padding: tuple[int, ...] = ()


class Pool(Struct, frozen=True, gc=False):
    """Pooling under a window; `p` is the norm of Lp pooling.

    With `indices` max pooling also tells where each maximum was, in numbers of `index_dtype` (those
    of its input if "").
    """

    window: Window
    count_include_pad: bool = True
    p: int = 2
    indices: bool = False
    index_dtype: str = "int64"


class Im2Col(Struct, frozen=True, gc=False):
    """What stands under each placement of a window, written out along the channels."""

    window: Window


class Pyramid(Struct, frozen=True, gc=False):
    """Pooling into 1, 2, 4 … bins an axis, one level after the other, joined to one vector."""

    levels: int


class Unpool(Struct, frozen=True, gc=False):
    """Elements put back where their maxima were, as the second input tells.

    The output is of `size`, or `scale` times the input and `less` shorter, per axis.
    """

    size: tuple[int, ...] = ()
    scale: tuple[int, ...] = ()
    less: tuple[int, ...] = (0, 0)


class GlobalPool(Struct, frozen=True, gc=False):
    """Pooling over all positions; `p` is the norm of Lp pooling."""

    p: int = 2


class AdaptivePool(Struct, frozen=True, gc=False):
    """Pooling into a fixed number of bins per axis; None keeps that axis as it is.

    With `indices` max pooling also tells where each maximum was.
    """

    output: tuple[int | None, ...]
    indices: bool = False
