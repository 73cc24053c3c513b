"""Convolutions, transposed convolutions, im2col and col2im."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from layerscope.formats.torch.aten.control import constant
from layerscope.formats.torch.aten.layout import permute, reshape
from layerscope.formats.torch.aten.signatures import IntOrInts, OneOutput, takes
from layerscope.formats.torch.lowering import Lowering, Refused, TensorRef, Unsupported
from layerscope.formats.torch.lowering import same_dtypes as one_dtype
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, Source, elements

STRING_PADDING = ".padding"  # suffix of the operator where padding is "same" or "valid"


def per_axis(value: IntOrInts, rank: int) -> tuple[int, ...]:
    """One int for each spatial axis."""
    if isinstance(value, int):
        return (value,) * rank
    sizes = tuple([int(each) for each in value])  # a module may store numpy integers
    return sizes * rank if len(sizes) == 1 else sizes


def symmetric_pads(padding: IntOrInts, rank: int) -> at.Pads:
    """The same padding at both ends of each spatial axis."""
    return tuple([(each, each) for each in per_axis(padding, rank)])


@lru_cache(4096)
def _window(kernel: Shape, stride: Shape, pads: at.Pads, dilation: Shape) -> at.Window:
    return at.Window(kernel, stride, pads, dilation)


def add_batch_axis(d: Lowering, x: TensorRef, rank: int) -> TensorRef:
    """The input with a batch axis, which PyTorch lets callers leave out."""
    return x if x.rank == rank + 2 else reshape(d, x, (1, *x.shape))


def drop_batch_axis(d: Lowering, y: TensorRef, x: TensorRef, rank: int) -> TensorRef:
    """The output without a batch axis if the input `x` had none."""
    return y if x.rank == rank + 2 else reshape(d, y, y.shape[1:])


class ConvArgs(Struct, frozen=True):
    """Arguments of aten::conv1d, conv2d and conv3d."""

    input: TensorRef
    weight: TensorRef
    bias: TensorRef | None = None
    stride: IntOrInts = 1
    padding: IntOrInts | str = 0
    dilation: IntOrInts = 1
    groups: int = 1


@takes(ConvArgs)
def conv(d: Lowering, args: ConvArgs) -> TensorRef:
    kernel = args.weight.shape[2:]
    rank = len(kernel)
    x = add_batch_axis(d, args.input, rank)
    if x.shape[1] != args.weight.shape[1] * args.groups or args.weight.shape[0] % args.groups:
        raise Unsupported("the channels of input, weight and groups do not agree")
    dilations = per_axis(args.dilation, rank)
    if isinstance(args.padding, str):
        d.source = Source(op=f"{d.source.op}{STRING_PADDING}")
        pads: at.Pads = ((0, 0),) * rank
        if args.padding == "same":
            totals = [gap * (size - 1) for gap, size in zip(dilations, kernel, strict=True)]
            pads = tuple([(total // 2, total - total // 2) for total in totals])
    else:
        pads = symmetric_pads(args.padding, rank)
    window = _window(kernel, per_axis(args.stride, rank), pads, dilations)
    attrs = at.Conv(window, args.weight.shape[0], int(args.groups), args.bias is not None)
    y = d.with_param_inputs("conv", x, attrs, {"weight": args.weight, "bias": args.bias})
    return drop_batch_axis(d, y, args.input, rank)


class TransposedConvArgs(Struct, frozen=True):
    """Arguments of aten::conv_transpose1d, 2d and 3d."""

    input: TensorRef
    weight: TensorRef
    bias: TensorRef | None = None
    stride: IntOrInts = 1
    padding: IntOrInts = 0
    output_padding: IntOrInts = 0
    groups: int = 1
    dilation: IntOrInts = 1


@takes(TransposedConvArgs)
def conv_transpose(d: Lowering, args: TransposedConvArgs) -> TensorRef:
    kernel = args.weight.shape[2:]
    rank = len(kernel)
    x = add_batch_axis(d, args.input, rank)
    if x.shape[1] != args.weight.shape[0]:
        raise Refused(
            f"an input of {x.shape[1]} channels, the weight is for {args.weight.shape[0]}"
        )
    pads = symmetric_pads(args.padding, rank)
    window = at.Window(kernel, per_axis(args.stride, rank), pads, per_axis(args.dilation, rank))
    extra = per_axis(args.output_padding, rank)
    groups = int(args.groups)
    attrs = at.TransposedConv(
        window, args.weight.shape[1] * groups, groups, args.bias is not None,
        extra if any(extra) else (),
    )  # fmt: skip
    y = d.with_param_inputs("conv_transpose", x, attrs, {"weight": args.weight, "bias": args.bias})
    return drop_batch_axis(d, y, args.input, rank)


class ConvolutionArgs(Struct, frozen=True):
    """Arguments of aten::convolution; only _convolution has the flags at the end."""

    input: TensorRef
    weight: TensorRef
    bias: TensorRef | None
    stride: IntOrInts
    padding: IntOrInts
    dilation: IntOrInts
    transposed: bool
    output_padding: IntOrInts
    groups: int
    benchmark: bool = False
    deterministic: bool = False
    cudnn_enabled: bool = False
    allow_tf32: bool = False


@takes(ConvolutionArgs)
def convolution(d: Lowering, args: ConvolutionArgs) -> TensorRef:
    if args.transposed:
        return conv_transpose(
            d,
            args.input,
            args.weight,
            args.bias,
            args.stride,
            args.padding,
            args.output_padding,
            args.groups,
            args.dilation,
        )
    return conv(
        d, args.input, args.weight, args.bias, args.stride, args.padding, args.dilation, args.groups
    )


def conv_tbc(
    d: Lowering, self: TensorRef, weight: TensorRef, bias: TensorRef, pad: int = 0
) -> TensorRef:
    """A convolution of T x N x C along the first axis."""
    x = permute(d, self, (1, 2, 0))
    kernel = permute(d, weight, (2, 1, 0))
    window = at.Window((weight.shape[0],), (1,), ((pad, pad),), (1,))
    attrs = at.Conv(window, weight.shape[2], 1, True)
    return permute(d, d.add("conv", x, kernel, bias, at=attrs), (2, 0, 1))


def im2col(
    d: Lowering,
    self: TensorRef,
    kernel_size: IntOrInts,
    dilation: IntOrInts,
    padding: IntOrInts,
    stride: IntOrInts,
) -> TensorRef:
    x = add_batch_axis(d, self, 2)
    window = at.Window(
        per_axis(kernel_size, 2), per_axis(stride, 2), symmetric_pads(padding, 2),
        per_axis(dilation, 2),
    )  # fmt: skip
    columns = d.add("im2col", x, at=at.Im2Col(window))
    flat = reshape(d, columns, (*columns.shape[:2], -1))
    return flat if self.rank == 4 else reshape(d, flat, flat.shape[1:])


class Col2ImArgs(Struct, frozen=True):
    """Arguments of aten::col2im."""

    self: TensorRef
    output_size: Sequence[int]
    kernel_size: IntOrInts
    dilation: IntOrInts
    padding: IntOrInts
    stride: IntOrInts


@takes(Col2ImArgs)
def col2im(d: Lowering, args: Col2ImArgs) -> TensorRef:
    """Each element of a column is added to the pixel it came from: a scatter into zeros."""
    x = args.self if args.self.rank == 3 else reshape(d, args.self, (1, *args.self.shape))
    kernel, starts = per_axis(args.kernel_size, 2), per_axis(args.padding, 2)
    window = at.Window(
        kernel,
        per_axis(args.stride, 2),
        symmetric_pads(args.padding, 2),
        per_axis(args.dilation, 2),
    )
    taps = elements(kernel)
    if x.shape[2] != elements(window.slide(tuple(args.output_size))) or x.shape[1] % taps:
        raise Unsupported("columns of an image of another size")
    batch, channels = x.shape[0], x.shape[1] // taps
    padded = [size + 2 * pad for size, pad in zip(args.output_size, starts, strict=True)]
    updates = reshape(d, x, (batch, channels, taps * x.shape[2]))
    zeros = constant(d, (batch, channels, padded[0] * padded[1]), x.dtype)
    index = constant(d, updates.shape, "int64")
    flat = d.add("scatter", zeros, index, updates, at=at.Scatter(2, add=True))
    image = reshape(d, flat, (batch, channels, *padded))
    if any(starts):
        ends = tuple(pad + size for pad, size in zip(starts, args.output_size, strict=True))
        image = d.add("slice", image, at=at.Slice((2, 3), starts, ends, (1, 1)))
    return image if args.self.rank == 3 else reshape(d, image, image.shape[1:])


TABLE: dict[str, OneOutput] = {
    **dict.fromkeys([f"conv{n}d" for n in (1, 2, 3)], one_dtype(conv)),
    **dict.fromkeys([f"conv_transpose{n}d" for n in (1, 2, 3)], one_dtype(conv_transpose)),
    **dict.fromkeys(("convolution", "_convolution"), one_dtype(convolution)),
    "conv_tbc": conv_tbc,
    "im2col": im2col,
    "col2im": col2im,
}
