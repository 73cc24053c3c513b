"""Operators in graphs that onnxruntime optimized and saved: fusions, NHWC and NCHWc layouts."""

from __future__ import annotations

from msgspec.structs import replace

from layerscope.errors import ShapeError
from layerscope.formats.onnx.converters.activation import apply_activation
from layerscope.formats.onnx.converters.convolution import conv_sum, weights, window
from layerscope.formats.onnx.converters.linear import product
from layerscope.formats.onnx.converters.pooling import global_pool, pool
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.tensor_info import TensorInfo
from layerscope.graph import attributes as at

BLOCKED = "com.microsoft.nchwc"
BLOCKS = (16, 8, 4)  # channels in a block, by the machine


def fused_gemm(node: OnnxNode) -> None:
    """FusedGemm: a product with an activation."""
    y = product(node, part="gemm")
    apply_activation(node, node.str_attr("activation"), y)


def gemm_gelu(node: OnnxNode) -> None:
    """GemmFastGelu: a product, a bias, gelu by tanh."""
    y = node.emit("matmul", (node.input("X"), node.input("W")), part="product")[0]
    if node.has("bias"):
        y = node.emit("add", (y, node.input("bias")), part="bias", roles="bias")[0]
    node.emit("gelu_tanh", (y,))


def bias_add(node: OnnxNode) -> None:
    """BiasAdd: a bias and a skip connection."""
    node.emit("add", node.given("X", "bias", "skip"), roles="bias")


def bias_dropout(node: OnnxNode) -> None:
    """BiasDropout: a bias, dropout and a residual; dropout does nothing at inference."""
    node.mark_constant("ratio", "training_mode")
    tensors = node.given("data", "bias", "residual")
    node.emit("add", tensors, roles="bias", outputs=node.outputs[:1])
    node.extra_output(1, node.shape("data"), "bool")


def bias_split_gelu(node: OnnxNode) -> None:
    """BiasSplitGelu: a bias, then one half times gelu of the other."""
    x = node.shape("X")
    y = node.emit("add", (node.input("X"), node.input("bias")), part="bias", roles="bias")[0]
    left, right = node.emit("split", (y,), at.Split(len(x) - 1, parts=2), part="halves")
    gate = node.emit("gelu", (right,), part="gelu")[0]
    node.emit("mul", (left, gate))


def to_first(node: OnnxNode, tensor: TensorInfo, *, part: str) -> TensorInfo:
    """A channels-last tensor in channels-first order, at no cost."""
    shape = tensor.shape
    assert shape is not None
    attrs = at.DeclaredOutputs(((shape[0], shape[-1], *shape[1:-1]),), (tensor.dtype,))
    return node.emit("select", (tensor,), attrs, part=part)[0]


def to_last(node: OnnxNode, tensor: TensorInfo) -> None:
    """The channels-last output, from a channels-first tensor."""
    shape = tensor.shape
    assert shape is not None
    node.emit_shaped("select", (tensor,), ((shape[0], *shape[2:], shape[1]),), (tensor.dtype,))


def nhwc_conv(node: OnnxNode) -> None:
    """NhwcConv, NhwcFusedConv: channels last in the inputs and the output."""
    x = to_first(node, node.input("X"), part="input")
    kernel = node.shape("W")
    assert x.shape is not None
    attrs = at.Conv(window(node, kernel[2:]), kernel[0], node.int_attr("group", 1), node.has("B"))
    params, given = weights(node)
    y = node.emit("conv", (x, *given), attrs, params=params, part="conv")[0]
    if node.has("Z"):
        other = to_first(node, node.input("Z"), part="sum")
        y = node.emit("add", (y, other), part="add")[0]
    if node.str_attr("activation"):
        y = apply_activation(node, node.str_attr("activation"), y, part="activation")
    to_last(node, y)


def nhwc_pool(node: OnnxNode) -> None:
    """NhwcMaxPool."""
    x = to_first(node, node.input(), part="input")
    assert x.shape is not None
    attrs = at.Pool(window(node, node.ints_attr("kernel_shape")))
    to_last(node, node.emit("max_pool", (x,), attrs, part="pool")[0])


def blocked_conv(node: OnnxNode) -> None:
    """Conv of the NCHWc layout: channels that pad the last block are stored and computed."""
    kernel = node.shape("W")
    x = node.input("X")
    if x.shape is None or len(x.shape) != 4 or len(kernel) != 4:
        raise ShapeError(f"a convolution of {x.shape} by {kernel}, expected four axes each")
    groups = node.int_attr("group", 1)
    if groups > 1 and kernel[1] == 1:
        groups = kernel[0]  # channels that pad the last block are groups as well
    if x.shape[1] != kernel[1] * groups:
        x = _padded_block(node, x, kernel[1] * groups)
    assert x.shape is not None
    attrs = at.Conv(window(node, kernel[2:]), kernel[0], groups, node.has("B"))
    conv_sum(node, x, attrs)


def _padded_block(node: OnnxNode, x: TensorInfo, channels: int) -> TensorInfo:
    """The input with its last block of channels padded."""
    assert x.shape is not None
    if channels < x.shape[1]:
        raise ShapeError(f"{x.shape[1]} channels and a kernel for {channels}")
    attrs = at.DeclaredOutputs(((x.shape[0], channels, *x.shape[2:]),), (x.dtype,))
    return node.emit("select", (x,), attrs, part="filled")[0]


def _block(node: OnnxNode) -> int:
    """Channels in a block of this file: the largest that divides those of every convolution."""
    reader = node.reader
    if not reader.channel_block:
        sizes = [
            tensor.shape[0]
            for proto in reader.model.graph.nodes
            if proto.domain == BLOCKED and proto.op == "Conv" and len(proto.inputs) > 1
            if (tensor := node.env.get(proto.inputs[1])) is not None and tensor.shape
        ]
        fits = (block for block in BLOCKS if all(size % block == 0 for size in sizes))
        reader.channel_block = next(fits, 1) if sizes else 1
    return reader.channel_block


def reorder_input(node: OnnxNode) -> None:
    """ReorderInput: channels into blocks, the last one padded."""
    x = node.input()
    if node.int_attr("channels_last"):
        x = _permuted(node, x, first=True, part="order")
    block = _block(node)
    assert x.shape is not None
    more = -x.shape[1] % block
    node.emit("pad", (x,), at.Pad(((0, 0), (0, more), *((0, 0) for _ in x.shape[2:]))))


def reorder_output(node: OnnxNode) -> None:
    """ReorderOutput: channels out of blocks, without padding."""
    channels = node.int_attr("channels") or node.shape()[1]
    last = bool(node.int_attr("channels_last"))
    attrs = at.Slice((1,), (0,), (channels,))
    y = node.emit("slice", (node.input(),), attrs, part="channels" if last else "")[0]
    if last:
        _permuted(node, y, first=False)


def _permuted(node: OnnxNode, x: TensorInfo, *, first: bool, part: str = "") -> TensorInfo:
    """Channels moved from the last axis to the second, or back."""
    assert x.shape is not None
    rank = len(x.shape)
    order = (0, rank - 1, *range(1, rank - 1)) if first else (0, *range(2, rank), 1)
    return node.emit("permute", (x,), at.Permute(order), part=part)[0]


def blocked_upsample(node: OnnxNode) -> None:
    """Upsample by integer factors."""
    x = node.shape()
    scales = node.ints_attr("scales", (1, 1, 1, 1))
    size = tuple(n * scale for n, scale in zip(x, scales, strict=True))[2:]
    mode: at.Resize = at.Resize(
        "bilinear" if node.str_attr("mode") == "linear" else "nearest", size
    )
    if node.str_attr("coordinate_transformation_mode") == "align_corners":
        mode = replace(mode, align_corners=True)
    node.emit("resize", (node.input(),), mode)


OPERATORS: ConverterTable = {
    ("com.microsoft", "FusedGemm"): Converter(fused_gemm, "A B C"),
    ("com.microsoft", "GemmFastGelu"): Converter(gemm_gelu, "X W bias"),
    ("com.microsoft", "BiasAdd"): Converter(bias_add, "X bias skip"),
    ("com.microsoft", "BiasDropout"): Converter(
        bias_dropout, "data bias residual ratio training_mode"
    ),
    ("com.microsoft", "BiasSplitGelu"): Converter(bias_split_gelu, "X bias"),
    ("com.microsoft", "NhwcFusedConv"): Converter(nhwc_conv, "X W B Z"),
    ("com.microsoft", "NhwcConv"): Converter(nhwc_conv, "X W B"),
    ("com.microsoft", "NhwcMaxPool"): Converter(nhwc_pool, "x"),
    (BLOCKED, "Conv"): Converter(blocked_conv, "X W B Sum"),
    (BLOCKED, "MaxPool"): Converter(pool, "X"),
    (BLOCKED, "AveragePool"): Converter(pool, "X"),
    (BLOCKED, "GlobalMaxPool"): Converter(global_pool, "X"),
    (BLOCKED, "GlobalAveragePool"): Converter(global_pool, "X"),
    (BLOCKED, "ReorderInput"): Converter(reorder_input, "X"),
    (BLOCKED, "ReorderOutput"): Converter(reorder_output, "X"),
    (BLOCKED, "Upsample"): Converter(blocked_upsample, "X"),
}
