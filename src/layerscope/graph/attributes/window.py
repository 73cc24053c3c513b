"""The sliding window of convolution, pooling and receptive fields."""

from __future__ import annotations

from math import prod
from typing import Literal

from msgspec import Struct

from layerscope.errors import ShapeError

Rounding = Literal["floor", "ceil", "caffe", "torch"]
Pads = tuple[tuple[int, int], ...]
Same = Literal["same_upper", "same_lower"]


class Window(Struct, frozen=True, gc=False):
    """A sliding window with any number of axes.

    `rounding` is for a position that only partly fits: `floor` drops it, `ceil` keeps it, `caffe`
    keeps it unless it starts in the end padding of a padded input, `torch` keeps it unless
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
        """Number of axes."""
        return len(self.kernel)

    @property
    def positions(self) -> int:
        """Number of kernel elements."""
        return prod(self.kernel)

    @property
    def extents(self) -> tuple[int, ...]:
        """Extent of the kernel per axis, dilation included."""
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
        """Number of window positions per axis on an input of these sizes."""
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
