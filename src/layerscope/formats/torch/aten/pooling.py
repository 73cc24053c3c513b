"""Max, average, adaptive and fractional pooling."""

from __future__ import annotations

from msgspec import Struct

from layerscope.formats.torch.aten.convolution import (
    add_batch_axis,
    drop_batch_axis,
    per_axis,
    symmetric_pads,
)
from layerscope.formats.torch.aten.signatures import Converter, IntOrInts, OneOutput, takes
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.graph import attributes as at
from layerscope.graph.types import elements


def _window(
    kernel: tuple[int, ...],
    stride: IntOrInts | None,
    padding: IntOrInts,
    dilation: IntOrInts,
    ceil_mode: bool,
) -> at.Window:
    rank = len(kernel)
    strides = kernel if stride is None or stride in ([], ()) else per_axis(stride, rank)
    pads, dilations = symmetric_pads(padding, rank), per_axis(dilation, rank)
    return at.Window(kernel, strides, pads, dilations, "torch" if ceil_mode else "floor")


class MaxPoolArgs(Struct, frozen=True):
    """Arguments of aten::max_pool1d, 2d and 3d, also with indices."""

    self: TensorRef
    kernel_size: IntOrInts
    stride: IntOrInts | None = None
    padding: IntOrInts = 0
    dilation: IntOrInts = 1
    ceil_mode: bool = False


def max_pool(rank: int) -> OneOutput:
    """A converter of `max_pool1d`, `max_pool2d` or `max_pool3d`."""

    @takes(MaxPoolArgs)
    def convert(d: Lowering, args: MaxPoolArgs) -> TensorRef:
        kernel = per_axis(args.kernel_size, rank)
        window = _window(kernel, args.stride, args.padding, args.dilation, args.ceil_mode)
        y = d.add("max_pool", add_batch_axis(d, args.self, rank), at=at.Pool(window))
        return drop_batch_axis(d, y, args.self, rank)

    return convert


def max_pool_with_indices(rank: int) -> Converter:
    """As `max_pool`, with the index of each maximum as a second output."""

    @takes(MaxPoolArgs)
    def convert(d: Lowering, args: MaxPoolArgs) -> list[TensorRef]:
        kernel = per_axis(args.kernel_size, rank)
        window = _window(kernel, args.stride, args.padding, args.dilation, args.ceil_mode)
        x = add_batch_axis(d, args.self, rank)
        outputs = d.several("max_pool", x, at=at.Pool(window, indices=True))
        return [drop_batch_axis(d, y, args.self, rank) for y in outputs]

    return convert


class AvgPoolArgs(Struct, frozen=True):
    """Arguments of aten::avg_pool1d, 2d and 3d."""

    self: TensorRef
    kernel_size: IntOrInts
    stride: IntOrInts | None = None
    padding: IntOrInts = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None


def avg_pool(rank: int) -> OneOutput:
    """A converter of `avg_pool1d`, `avg_pool2d` or `avg_pool3d`."""

    @takes(AvgPoolArgs)
    def convert(d: Lowering, args: AvgPoolArgs) -> TensorRef:
        kernel = per_axis(args.kernel_size, rank)
        window = _window(kernel, args.stride, args.padding, 1, args.ceil_mode)
        attrs = at.Pool(window, bool(args.count_include_pad))
        y = d.add("avg_pool", add_batch_axis(d, args.self, rank), at=attrs)
        return drop_batch_axis(d, y, args.self, rank)

    return convert


class AvgPoolGradArgs(Struct, frozen=True):
    """Arguments of aten::avg_pool2d_backward and 3d."""

    grad_output: TensorRef
    self: TensorRef
    kernel_size: IntOrInts
    stride: IntOrInts | None
    padding: IntOrInts
    ceil_mode: bool
    count_include_pad: bool
    divisor_override: int | None = None


def avg_pool_backward(rank: int) -> OneOutput:
    """A converter of `avg_pool2d_backward` or `avg_pool3d_backward`."""

    @takes(AvgPoolGradArgs)
    def convert(d: Lowering, args: AvgPoolGradArgs) -> TensorRef:
        kernel = per_axis(args.kernel_size, rank)
        window = _window(kernel, args.stride, args.padding, 1, args.ceil_mode)
        attrs = at.Pool(window, bool(args.count_include_pad))
        return _input_gradient(d, "avg_pool", (args.grad_output, args.self), attrs)

    return convert


def adaptive_avg_pool_backward(rank: int) -> OneOutput:
    """A converter of `_adaptive_avg_pool2d_backward` or `_adaptive_avg_pool3d_backward`."""

    def convert(d: Lowering, grad_output: TensorRef, self: TensorRef) -> TensorRef:
        attrs = at.AdaptivePool(grad_output.shape[-rank:])
        return _input_gradient(d, "adaptive_avg_pool", (grad_output, self), attrs)

    return convert


def _input_gradient(
    d: Lowering, op: str, tensors: tuple[TensorRef, TensorRef], attrs: at.Pool | at.AdaptivePool
) -> TensorRef:
    """The gradient of a pool's input, from the gradient of its output and the input."""
    sizes = attrs.window.kernel if isinstance(attrs, at.Pool) else attrs.output
    grad, x = tensors
    batched = add_batch_axis(d, grad, len(sizes))
    shape = x.shape if x.rank == len(sizes) + 2 else (1, *x.shape)
    return drop_batch_axis(d, d.gradient(op, batched, shape, attrs), x, len(sizes))


def _adaptive_input(
    d: Lowering, x: TensorRef, output_size: IntOrInts, rank: int
) -> tuple[TensorRef, tuple[int, ...]]:
    """The input with a batch axis, and the output size for each spatial axis."""
    if x.rank - rank not in (1, 2):
        raise Unsupported(f"pooling along {rank} axes of a tensor of rank {x.rank}")
    if not isinstance(output_size, int) and len(output_size) != rank:
        raise Unsupported(f"{len(output_size)} output sizes for {rank} axes")
    return add_batch_axis(d, x, rank), per_axis(output_size, rank)


def adaptive_avg_pool(rank: int) -> OneOutput:
    """A converter of `adaptive_avg_pool1d`, `adaptive_avg_pool2d` or `adaptive_avg_pool3d`."""

    def convert(d: Lowering, self: TensorRef, output_size: IntOrInts) -> TensorRef:
        x, sizes = _adaptive_input(d, self, output_size, rank)
        y = d.add("adaptive_avg_pool", x, at=at.AdaptivePool(sizes))
        return drop_batch_axis(d, y, self, rank)

    return convert


def adaptive_max_pool(rank: int) -> Converter:
    """As `adaptive_avg_pool`, with the index of each maximum as a second output."""

    def convert(d: Lowering, self: TensorRef, output_size: IntOrInts) -> list[TensorRef]:
        x, sizes = _adaptive_input(d, self, output_size, rank)
        outputs = d.several("adaptive_max_pool", x, at=at.AdaptivePool(sizes, indices=True))
        return [drop_batch_axis(d, y, self, rank) for y in outputs]

    return convert


def fractional_max_pool(
    d: Lowering, self: TensorRef, kernel_size: IntOrInts, output_size: IntOrInts, *_: object
) -> TensorRef:
    """The maximum of each of `output_size` windows at random positions."""
    rank = len(output_size) if isinstance(output_size, (list, tuple)) else self.rank - 2
    kernel, sizes = per_axis(kernel_size, rank), per_axis(output_size, rank)
    shape = (*self.shape[: self.rank - rank], *sizes)
    compared = (elements(kernel) - 1) * elements(shape)
    return d.add("custom", self, at=at.CustomCost((shape,), (self.dtype,), comp=compared))


AVERAGES: dict[str, OneOutput] = {
    **{f"avg_pool{n}d": avg_pool(n) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": adaptive_avg_pool(n) for n in (1, 2, 3)},
    **{f"_adaptive_avg_pool{n}d": adaptive_avg_pool(n) for n in (2, 3)},
}

TABLE: dict[str, Converter] = {
    **AVERAGES,
    **{f"max_pool{n}d": max_pool(n) for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices": max_pool_with_indices(n) for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d": adaptive_max_pool(n) for n in (1, 2, 3)},
    **{f"avg_pool{n}d_backward": avg_pool_backward(n) for n in (2, 3)},
    **{f"_adaptive_avg_pool{n}d_backward": adaptive_avg_pool_backward(n) for n in (2, 3)},
    "fractional_max_pool2d": fractional_max_pool,
    "fractional_max_pool3d": fractional_max_pool,
}
