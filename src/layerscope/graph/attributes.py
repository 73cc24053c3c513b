"""What an operation was told, by family. A node of op `conv` carries a `Conv`, and so on."""

from __future__ import annotations

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
        if not isinstance(self.pads, str) and any(min(pair) < 0 for pair in self.pads):
            raise ShapeError(f"pads {self.pads}, expected none below 0")

    @property
    def rank(self) -> int:
        """Number of axes it slides along."""
        return len(self.kernel)

    @property
    def positions(self) -> int:
        """Input positions under one placement, padding included."""
        count = 1
        for size in self.kernel:
            count *= size
        return count

    @property
    def extents(self) -> tuple[int, ...]:
        """Input length one placement spans, dilation included."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

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
        padded = any(begin or end for begin, end in pads)
        counts = []
        for axis, (size, extent, step) in enumerate(
            zip(sizes, self.extents, self.stride, strict=True)
        ):
            begin, end = pads[axis]
            room = size + begin + end - extent
            if room < 0:
                padded_to = tuple(s + b + e for s, (b, e) in zip(sizes, pads, strict=True))
                raise ShapeError(
                    f"kernel {_times(self.extents)} does not fit input {_times(sizes)} "
                    f"padded to {_times(padded_to)}"
                )
            count = (room if self.rounding == "floor" else room + step - 1) // step + 1
            clips = self.rounding == "torch" or (self.rounding == "caffe" and padded)
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


class TransposedConv(Struct, frozen=True, gc=False):
    """Transposed convolution; the window is that of the convolution it transposes."""

    window: Window
    out_channels: int
    groups: int = 1
    bias: bool = True
    output_padding: tuple[int, ...] = ()


class Pool(Struct, frozen=True, gc=False):
    """Pooling under a window; `p` is the norm of Lp pooling."""

    window: Window
    count_include_pad: bool = True
    p: int = 2


class GlobalPool(Struct, frozen=True, gc=False):
    """Pooling over all positions; `p` is the norm of Lp pooling."""

    p: int = 2


class AdaptivePool(Struct, frozen=True, gc=False):
    """Pooling into a fixed number of bins per axis; None keeps that axis as it is."""

    output: tuple[int | None, ...]


class Linear(Struct, frozen=True, gc=False):
    """A matrix applied to the last axis, or with `flatten` to all axes from the second on."""

    out_features: int
    bias: bool = True
    flatten: bool = False


class MatMul(Struct, frozen=True, gc=False):
    """Product of two tensors over their last two axes, the rest broadcast."""

    transpose_a: bool = False
    transpose_b: bool = False


class BatchNorm(Struct, frozen=True, gc=False):
    """Normalisation by stored statistics per channel."""

    affine: bool = True
    eps: float = 1e-5
    momentum: float = 0.1


class LocalResponseNorm(Struct, frozen=True, gc=False):
    """Division by the energy of `size` neighbours, across channels or within each."""

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0
    within_channel: bool = False


class L2Norm(Struct, frozen=True, gc=False):
    """Division by the Euclidean norm over `axes`, with an optional learned scale per channel."""

    axes: tuple[int, ...] = (1,)
    scale: bool = False
    shared_scale: bool = False
    eps: float = 1e-10


class LayerNorm(Struct, frozen=True, gc=False):
    """Normalisation over the axes from `axis` on, by statistics of the input."""

    axis: int = -1
    affine: bool = True
    bias: bool = True
    eps: float = 1e-5


class GroupNorm(Struct, frozen=True, gc=False):
    """Normalisation over groups of channels and all positions."""

    groups: int
    affine: bool = True
    eps: float = 1e-5


class Scale(Struct, frozen=True, gc=False):
    """Multiplication by a learned value per channel, with an optional learned shift."""

    axis: int = 1
    bias: bool = False


class Activation(Struct, frozen=True, gc=False):
    """An element-wise function; `alpha` and `beta` are its constants where it has any."""

    alpha: float | None = None
    beta: float | None = None
    in_place: bool = False


class PReLU(Struct, frozen=True, gc=False):
    """ReLU with a learned slope below zero, one per channel or one in all."""

    shared: bool = False
    initial: float = 0.25


class Softmax(Struct, frozen=True, gc=False):
    """Softmax along one axis."""

    axis: int = 1


class Concat(Struct, frozen=True, gc=False):
    """Joining along one axis."""

    axis: int = 1


class Split(Struct, frozen=True, gc=False):
    """Cutting along one axis into pieces of these sizes."""

    axis: int
    sizes: tuple[int, ...]


class Slice(Struct, frozen=True, gc=False):
    """A range with a step on each named axis, ends as Python's slices take them."""

    axes: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    steps: tuple[int, ...] = ()


class Reshape(Struct, frozen=True, gc=False):
    """A new shape for the same elements; 0 keeps an axis, one -1 takes what is left."""

    shape: tuple[int, ...]


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
    mode: Literal["constant", "reflect", "edge"] = "constant"


class Crop(Struct, frozen=True, gc=False):
    """Cutting the first input to the sizes of the second from `axis` on."""

    axis: int = 2
    offsets: tuple[int, ...] = (0,)


class Resize(Struct, frozen=True, gc=False):
    """Resampling the spatial axes to `size`, or by `scale` (numerator, denominator) per axis."""

    mode: Literal["nearest", "bilinear", "bicubic"] = "nearest"
    size: tuple[int, ...] = ()
    scale: tuple[tuple[int, int], ...] = ()
    align_corners: bool = False


class PixelShuffle(Struct, frozen=True, gc=False):
    """Moving blocks of `factor` x `factor` channels into space, or back with `inverse`."""

    factor: int
    inverse: bool = False


class Dropout(Struct, frozen=True, gc=False):
    """Random zeros in training, nothing at inference."""

    p: float = 0.5
    in_place: bool = False


class RoIPool(Struct, frozen=True, gc=False):
    """Max pooling of each region (second input, R x 5) into a grid of bins."""

    output: tuple[int, int]
    scale: float = 1.0
