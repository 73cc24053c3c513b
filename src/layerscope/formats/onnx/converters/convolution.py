"""Convolutions, transposed and deformable ones."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.converters.activation import apply_activation
from layerscope.formats.onnx.converters.normalization import arrays
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.tensor_info import TensorInfo
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, elements
from layerscope.ops import SPECS, Call


def window(node: OnnxNode, kernel: tuple[int, ...]) -> at.Window:
    """The window of a convolution or of pooling, from strides, pads, dilations and auto_pad."""
    rank = len(kernel)
    auto = node.str_attr("auto_pad", "NOTSET")
    strides = node.ints_attr("strides") or (1,) * rank
    dilations = node.ints_attr("dilations") or (1,) * rank
    pads: at.Pads | at.Same
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        pads = "same_upper" if auto == "SAME_UPPER" else "same_lower"
    elif auto == "VALID":
        pads = ((0, 0),) * rank
    else:
        flat = node.ints_attr("pads") or (0,) * (2 * rank)
        if len(flat) != 2 * rank:
            raise ShapeError(f"{len(flat)} pads for a window of {rank} axes")
        pads = tuple((flat[n], flat[n + rank]) for n in range(rank))
    rounding: at.Rounding = "torch" if node.int_attr("ceil_mode") else "floor"
    return at.Window(kernel, strides, pads, dilations, rounding)


def weights(node: OnnxNode) -> tuple[list[Param], list[TensorInfo]]:
    """Kernel `W` and bias `B`: as parameters if they are stored, else as inputs."""
    return arrays(node, (("W", "weight", "weight"), ("B", "bias", "bias")))


def _kernel(node: OnnxNode, rank: int) -> tuple[int, ...]:
    shape = node.shape(1)
    if len(shape) != rank:
        raise ShapeError(f"a kernel of {len(shape)} axes for an input of {rank}")
    return shape


def conv_attributes(node: OnnxNode, bias: bool) -> at.Conv:
    """Attributes of a convolution of the first input by the second."""
    key = (node.shape(), node.shape(1), bias)
    return node.parsed.cached(key, lambda: _conv_attributes(node, bias))


def _conv_attributes(node: OnnxNode, bias: bool) -> at.Conv:
    x = node.shape()
    shape = _kernel(node, len(x))
    groups = node.int_attr("group", 1)
    if groups < 1 or x[1] != shape[1] * groups:
        raise ShapeError(f"{x[1]} channels and a kernel for {shape[1]} in {groups} groups")
    return at.Conv(window(node, shape[2:]), shape[0], groups, bias)


def conv(node: OnnxNode) -> None:
    """Conv."""
    params, given = weights(node)
    attrs = conv_attributes(node, len(params) + len(given) > 1)
    node.emit("conv", (node.input(), *given), attrs, params=params)


def fused_conv(node: OnnxNode) -> None:
    """FusedConv: a convolution, a sum and an activation."""
    conv_sum(node, node.input("X"), conv_attributes(node, node.has("B")))


def conv_sum(node: OnnxNode, x: TensorInfo, attributes: at.Conv) -> None:
    """A convolution by `W` and `B`, a sum with the fourth input, an activation."""
    params, given = weights(node)
    named = node.str_attr("activation")
    other = node.optional(3)
    part = "conv" if other is not None or named else ""
    y = node.emit("conv", (x, *given), attributes, params=params, part=part)[0]
    if other is not None:
        y = node.emit("add", (y, other), part="add" if named else "")[0]
    if named:
        apply_activation(node, named, y)


def conv_transpose(node: OnnxNode) -> None:
    """ConvTranspose; the pads follow from `output_shape` or `auto_pad` if they are given."""
    x, kernel = node.shape("X"), _kernel(node, len(node.shape("X")))
    rank = len(x) - 2
    groups = node.int_attr("group", 1)
    if groups < 1 or x[1] != kernel[0]:
        raise ShapeError(f"{x[1]} channels and a kernel for {kernel[0]}")
    taps = window(node, kernel[2:])
    extra = node.ints_attr("output_padding") or (0,) * rank
    wanted = node.ints_attr("output_shape")
    auto = node.str_attr("auto_pad", "NOTSET")
    if wanted or auto.startswith("SAME"):
        sizes = (
            wanted[-rank:]
            if wanted
            else tuple(size * step for size, step in zip(x[2:], taps.stride, strict=True))
        )
        pads = []
        for n, size in enumerate(sizes):
            full = (x[n + 2] - 1) * taps.stride[n] + taps.extents[n] + extra[n]
            total = max(full - size, 0)
            less = total // 2
            pads.append((total - less, less) if auto == "SAME_UPPER" else (less, total - less))
            extra = (*extra[:n], extra[n] + max(size - full, 0), *extra[n + 1 :])
        taps = at.Window(taps.kernel, taps.stride, tuple(pads), taps.dilation)
    params, given = weights(node)
    attributes = at.TransposedConv(taps, kernel[1] * groups, groups, node.has("B"), extra)
    node.emit("conv_transpose", (node.input("X"), *given), attributes, params=params)


def deform_conv(node: OnnxNode) -> None:
    """DeformConv: the taps of the kernel are moved by offsets."""
    x = node.shape("X")
    kernel = _kernel(node, len(x))
    attributes = at.DeformConv(
        window(node, kernel[2:]),
        kernel[0],
        node.int_attr("group", 1),
        node.has("B"),
        node.int_attr("offset_group", 1),
    )
    params, computed = weights(node)
    more = node.given("offset", "mask")
    if not computed:
        node.emit("deform_conv", (node.input("X"), *more), attributes, params=params)
        return
    rule = SPECS["deform_conv"]  # which takes only stored weights
    call = Call(attributes, (x, *[tensor.shape for tensor in more if tensor.shape is not None]))
    call = Call(attributes, call.inputs, rule.shape(call))
    ops = rule.ops(call)
    attrs = at.CustomCost(call.outputs, (node.dtype("X"),), mac=ops.mac, add=ops.add, mul=ops.mul)
    node.emit_custom((node.input("X"), *more, *computed), attrs, params=params)


def col2im(node: OnnxNode) -> None:
    """Col2Im: blocks are added where they overlap."""
    x = node.shape("input")
    sizes, block = node.need_value("image_shape").ints(), node.need_value("block_shape").ints()
    count = elements(block)
    if len(x) != 3 or count < 1 or x[1] % count:
        raise ShapeError(f"blocks of {block} in {x}")
    slides = window(node, block).slide(sizes)
    if elements(slides) != x[2]:
        raise ShapeError(f"{x[2]} blocks of {block} over {sizes}, expected {elements(slides)}")
    y = node.emit("add", (node.input("input"),), part="sums")[0]
    node.emit_shaped("select", (y,), ((x[0], x[1] // count, *sizes),), (node.dtype("input"),))


OPERATORS: ConverterTable = {
    ("", "Conv"): Converter(conv, "X W B"),
    ("", "ConvTranspose"): Converter(conv_transpose, "X W B"),
    ("", "DeformConv"): Converter(deform_conv, "X W offset B mask"),
    ("com.microsoft", "FusedConv"): Converter(fused_conv, "X W B Z"),
    ("", "Col2Im"): Converter(col2im, "input image_shape block_shape"),
}
