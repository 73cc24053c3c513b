"""Writing a network in Python: one method an op, each returning the name of the tensor it makes.

>>> from layerscope import Builder
>>> b = Builder("tiny")
>>> x = b.input("data", (1, 3, 32, 32))
>>> x = b.relu(b.conv(x, 16, 3, padding=1))
>>> network = b.build(b.linear(b.flatten(x), 10))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from layerscope.builder.assembly import Padding, Sizes, sizes
from layerscope.builder.sequences import Sequences
from layerscope.graph import attributes as at


class Builder(Sequences):
    """Every op as a method; ops without one go in by `add_node`."""

    def conv(
        self,
        x: str,
        channels: int,
        kernel: Sizes,
        *,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        name: str | None = None,
    ) -> str:
        """Convolution into so many channels."""
        window = self.window(kernel, stride, padding, dilation)
        return self._add_one("conv", x, at.Conv(window, channels, groups, bias), name)

    def conv_transpose(
        self,
        x: str,
        channels: int,
        kernel: Sizes,
        *,
        stride: Sizes = 1,
        padding: Padding = 0,
        output_padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        name: str | None = None,
    ) -> str:
        """Transposed convolution into so many channels."""
        window = self.window(kernel, stride, padding, dilation)
        extra = sizes(output_padding, window.rank)
        attributes = at.TransposedConv(window, channels, groups, bias, extra)
        return self._add_one("conv_transpose", x, attributes, name)

    def _pool(self, kind: str, x: str, window: at.Window, name: str | None, **more: Any) -> str:
        return self._add_one(kind, x, at.Pool(window, **more), name)

    def max_pool(
        self,
        x: str,
        kernel: Sizes,
        *,
        stride: Sizes | None = None,
        padding: Padding = 0,
        dilation: Sizes = 1,
        rounding: at.Rounding = "floor",
        name: str | None = None,
    ) -> str:
        """Max pooling; the stride is the kernel unless given."""
        window = self.window(
            kernel, kernel if stride is None else stride, padding, dilation, rounding
        )
        return self._pool("max_pool", x, window, name)

    def avg_pool(
        self,
        x: str,
        kernel: Sizes,
        *,
        stride: Sizes | None = None,
        padding: Padding = 0,
        rounding: at.Rounding = "floor",
        count_include_pad: bool = True,
        name: str | None = None,
    ) -> str:
        """Average pooling; the stride is the kernel unless given."""
        window = self.window(kernel, kernel if stride is None else stride, padding, 1, rounding)
        return self._pool("avg_pool", x, window, name, count_include_pad=count_include_pad)

    def lp_pool(
        self,
        x: str,
        kernel: Sizes,
        *,
        p: int = 2,
        stride: Sizes | None = None,
        padding: Padding = 0,
        name: str | None = None,
    ) -> str:
        """Pooling by the p-norm; the stride is the kernel unless given."""
        window = self.window(kernel, kernel if stride is None else stride, padding)
        return self._pool("lp_pool", x, window, name, p=p)

    def global_pool(self, x: str, kind: str = "avg", *, name: str | None = None) -> str:
        """Pooling over all positions: kind is avg, max or lp."""
        return self._add_one(f"global_{kind}_pool", x, at.GlobalPool(), name)

    def adaptive_pool(
        self,
        x: str,
        output: int | Sequence[int | None],
        kind: str = "avg",
        *,
        name: str | None = None,
    ) -> str:
        """Pooling into so many bins per axis: kind is avg or max."""
        bins = (output,) * self._rank() if isinstance(output, int) else tuple(output)
        return self._add_one(f"adaptive_{kind}_pool", x, at.AdaptivePool(bins), name)

    # -- products, norms, activations

    def linear(
        self,
        x: str,
        features: int,
        *,
        bias: bool = True,
        flatten: bool = False,
        tied: str = "",
        name: str | None = None,
    ) -> str:
        """A matrix applied to the last axis, or with `flatten` to all but the first.

        `tied` names the storage that the matrix shares with another layer, such as `wte.weight`.
        """
        ties = {"weight": tied} if tied else None
        attributes = at.Linear(features, bias, flatten)
        return self.add_node("linear", (x,), attributes, name=name, ties=ties)[0]

    def matmul(self, a: str, b: str, *, name: str | None = None) -> str:
        """Product of two tensors over their last two axes."""
        return self.add_node("matmul", (a, b), at.MatMul(), name=name)[0]

    def batch_norm(
        self, x: str, *, affine: bool = True, eps: float = 1e-5, name: str | None = None
    ) -> str:
        """Normalisation by stored statistics per channel."""
        return self._add_one("batch_norm", x, at.BatchNorm(affine, eps), name)

    def layer_norm(
        self,
        x: str,
        *,
        axis: int = -1,
        affine: bool = True,
        eps: float = 1e-5,
        name: str | None = None,
    ) -> str:
        """Normalisation over the axes from `axis` on."""
        return self._add_one("layer_norm", x, at.LayerNorm(axis, affine, eps=eps), name)

    def group_norm(
        self, x: str, groups: int, *, affine: bool = True, name: str | None = None
    ) -> str:
        """Normalisation over groups of channels."""
        return self._add_one("group_norm", x, at.GroupNorm(groups, affine), name)

    def lrn(
        self,
        x: str,
        size: int,
        *,
        alpha: float = 1e-4,
        beta: float = 0.75,
        k: float = 1.0,
        within_channel: bool = False,
        name: str | None = None,
    ) -> str:
        """Local response normalisation over `size` neighbours."""
        return self._add_one(
            "lrn", x, at.LocalResponseNorm(size, alpha, beta, k, within_channel), name
        )

    def l2_norm(
        self, x: str, *, axes: Sequence[int] = (1,), scale: bool = False, name: str | None = None
    ) -> str:
        """Division by the Euclidean norm over `axes`, with an optional learned scale."""
        return self._add_one("l2_norm", x, at.L2Norm(tuple(axes), scale), name)

    def scale(self, x: str, *, axis: int = 1, bias: bool = False, name: str | None = None) -> str:
        """Multiplication by a learned value per channel, with an optional learned shift."""
        return self._add_one("scale", x, at.Scale(axis, bias), name)

    def relu(
        self, x: str, *, in_place: bool = False, name: str | None = None, module: bool = True
    ) -> str:
        """Rectified linear unit; `module` False where it is a bare function call."""
        return self.activation("relu", x, in_place=in_place, name=name, module=module)

    def activation(
        self,
        op: str,
        x: str,
        *,
        alpha: float | None = None,
        beta: float | None = None,
        in_place: bool = False,
        name: str | None = None,
        module: bool = True,
    ) -> str:
        """Any element-wise function by its op name: relu6, sigmoid, tanh, gelu, silu …"""
        attributes = at.Activation(alpha, beta, in_place)
        return self.add_node(op, (x,), attributes, name=name, module=module)[0]

    def prelu(self, x: str, *, shared: bool = False, name: str | None = None) -> str:
        """ReLU with a learned slope, one per channel or one in all."""
        return self._add_one("prelu", x, at.PReLU(shared), name)

    def softmax(self, x: str, *, axis: int = 1, name: str | None = None) -> str:
        """Softmax along one axis."""
        return self._add_one("softmax", x, at.Softmax(axis), name)

    def softmax_loss(self, x: str, *, axis: int = 1, name: str | None = None) -> str:
        """Cross entropy of a softmax along one axis."""
        return self._add_one("softmax_loss", x, at.Softmax(axis), name)

    def dropout(
        self, x: str, p: float = 0.5, *, in_place: bool = False, name: str | None = None
    ) -> str:
        """Dropout: nothing at inference."""
        return self._add_one("dropout", x, at.Dropout(p, in_place), name)

    # -- joins and shapes

    def add(self, *xs: str, name: str | None = None) -> str:
        """Sum of tensors, broadcast."""
        return self.add_node("add", xs, None, name=name)[0]

    def mul(self, *xs: str, name: str | None = None) -> str:
        """Product of tensors, broadcast."""
        return self.add_node("mul", xs, None, name=name)[0]

    def sub(self, a: str, b: str, *, name: str | None = None) -> str:
        """Difference of two tensors, broadcast."""
        return self.add_node("sub", (a, b), None, name=name)[0]

    def div(self, a: str, b: str, *, name: str | None = None) -> str:
        """Quotient of two tensors, broadcast."""
        return self.add_node("div", (a, b), None, name=name)[0]

    def concat(self, *xs: str, axis: int = 1, name: str | None = None) -> str:
        """Join along one axis."""
        return self.add_node("concat", xs, at.Concat(axis), name=name)[0]

    def split(
        self, x: str, sizes: Sequence[int], *, axis: int = 1, name: str | None = None
    ) -> tuple[str, ...]:
        """Cut along one axis into pieces of these sizes."""
        return self.add_node(
            "split", (x,), at.Split(axis, tuple(sizes)), name=name, outputs=len(sizes)
        )

    def flatten(self, x: str, start: int = 1, end: int = -1, *, name: str | None = None) -> str:
        """Merge axes into one."""
        return self._add_one("flatten", x, at.Flatten(start, end), name)

    def reshape(self, x: str, shape: Sequence[int], *, name: str | None = None) -> str:
        """Give the elements a new shape; 0 keeps an axis, -1 takes what is left."""
        return self._add_one("reshape", x, at.Reshape(tuple(shape)), name)

    def permute(self, x: str, order: Sequence[int], *, name: str | None = None) -> str:
        """Put the axes in a new order."""
        return self._add_one("permute", x, at.Permute(tuple(order)), name)

    def slice(
        self,
        x: str,
        axis: int,
        start: int,
        end: int,
        step: int = 1,
        *,
        name: str | None = None,
    ) -> str:
        """A range of one axis, ends as Python's slices take them."""
        return self._add_one("slice", x, at.Slice((axis,), (start,), (end,), (step,)), name)

    def pad(self, x: str, pads: Sequence[tuple[int, int]], *, name: str | None = None) -> str:
        """Zeros before and after each axis."""
        return self._add_one("pad", x, at.Pad(tuple(pads)), name)

    def crop(
        self, x: str, like: str, *, axis: int = 2, offset: int = 0, name: str | None = None
    ) -> str:
        """Cut to the sizes of another tensor from `axis` on."""
        return self.add_node("crop", (x, like), at.Crop(axis, (offset,)), name=name)[0]

    def roi_pool(
        self,
        x: str,
        regions: str,
        output: tuple[int, int],
        *,
        scale: float = 1.0,
        name: str | None = None,
    ) -> str:
        """Max pooling of each region (R x 5) into a grid of bins."""
        return self.add_node("roi_pool", (x, regions), at.RoIPool(output, scale), name=name)[0]

    def resize(
        self, x: str, factor: int, *, mode: at.Sampling = "nearest", name: str | None = None
    ) -> str:
        """Enlarge every spatial axis by a whole factor."""
        return self._add_one("resize", x, at.Resize(mode, scale=((factor, 1),)), name)

    def pixel_shuffle(
        self, x: str, factor: int, *, inverse: bool = False, name: str | None = None
    ) -> str:
        """Move blocks of channels into space."""
        return self._add_one("pixel_shuffle", x, at.PixelShuffle(factor, inverse), name)

    def _add_one(self, op: str, x: str, attributes: Struct | None, name: str | None) -> str:
        return self.add_node(op, (x,), attributes, name=name)[0]
