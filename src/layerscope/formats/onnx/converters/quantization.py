"""Quantization, dequantization, and operators on quantized tensors."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.converters.convolution import conv_attributes, window
from layerscope.formats.onnx.dtypes import DTYPES, cast_dtype
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.node_view import InputId
from layerscope.formats.onnx.tensor_info import TensorInfo
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, Role


def scales(node: OnnxNode, *inputs: InputId) -> tuple[Param, ...]:
    """Scales and zero points in turn, which calibration sets: buffers, if the file stores them."""
    return tuple(
        node.param(n, f"{'zero_point' if turn % 2 else 'scale'}{n}", "statistic")
        for turn, n in enumerate(
            [node.index(which) if node.stored(which) else -1 for which in inputs]
        )
        if n >= 0
    )


def mark_quantized(node: OnnxNode, which: InputId) -> None:
    """A stored input holds quantized weights: integers that count as learned."""
    entry = node.input(which).initializer
    if entry is not None:
        entry.quantized = True


def quantize(node: OnnxNode) -> None:
    """QuantizeLinear: the dtype is that of the zero point, else of an attribute."""
    zero = node.optional("y_zero_point")
    dtype = zero.dtype if zero is not None else DTYPES.get(node.int_attr("output_dtype"), "uint8")
    per_channel = bool(node.has("y_scale") and node.shape("y_scale"))
    attrs = at.Quantize(dtype, per_channel=per_channel)
    node.emit("quantize", (node.input("x"),), attrs, params=_scale_params(node))


def dequantize(node: OnnxNode) -> None:
    """DequantizeLinear: the dtype is that of the scale."""
    per_channel = bool(node.has("x_scale") and node.shape("x_scale"))
    attrs = at.Quantize(node.dtype("x"), per_channel=per_channel)
    mark_quantized(node, "x")
    node.emit("dequantize", (node.input("x"),), attrs, params=_scale_params(node))


def _scale_params(node: OnnxNode) -> tuple[Param, ...]:
    names = {1: "scale", 2: "zero_point"}
    return tuple(node.param(n, name, "statistic") for n, name in names.items() if node.stored(n))


def dynamic_quantize(node: OnnxNode) -> None:
    """DynamicQuantizeLinear: scale and zero point from the range of the input."""
    x, names = node.input("x"), node.outputs
    low = node.emit("reduce_min", (x,), at.Reduce(), part="min")[0]
    high = node.emit("reduce_max", (x,), at.Reduce(), part="max")[0]
    span = node.emit("sub", (high, low), part="range")[0]
    node.emit("div", (span,), part="scale", outputs=names[1:2])
    zero = node.emit("div", (low,), part="point")[0]
    node.emit("cast", (zero,), at.Cast("uint8"), part="zero_point", outputs=names[2:3])
    node.emit("quantize", (x,), at.Quantize("uint8"), outputs=names[:1])


def product(node: OnnxNode, x: TensorInfo, right: InputId, more: tuple[Param, ...]) -> TensorInfo:
    """The product with an input; a linear layer if that is stored."""
    shape = node.shape(right)
    if len(shape) < 2:
        raise ShapeError(f"a matrix product by {shape}")
    mark_quantized(node, right)
    if node.stored(right) and len(shape) == 2:
        if x.shape is None or x.shape[-1] != shape[0]:
            raise ShapeError(f"matrix product of {x.shape} by {shape}")
        params = [node.param(right, "weight", "weight"), *more]
        linear = at.Linear(shape[1], bias=False)
        return node.emit("linear", (x,), linear, params=params, part="product")[0]
    return node.emit("matmul", (x, node.input(right)), params=more, part="product")[0]


def integer_matmul(node: OnnxNode) -> None:
    """MatMulInteger: sums in 32 bits."""
    y = product(node, node.input("A"), "B", scales(node, "a_zero_point", "b_zero_point"))
    node.emit("cast", (y,), at.Cast("int32"))


def integer_conv(node: OnnxNode) -> None:
    """ConvInteger: sums in 32 bits."""
    stored = node.stored("w")
    params: tuple[Param, ...] = ()
    if stored:
        zeros = scales(node, "x_zero_point", "w_zero_point")
        params = (node.param("w", "weight", "weight"), *zeros)
    more = () if stored else (node.input("w"),)
    attrs = conv_attributes(node, bias=False)
    y = node.emit("conv", (node.input("x"), *more), attrs, params=params, part="conv")[0]
    node.emit("cast", (y,), at.Cast("int32"))


def linear_conv(node: OnnxNode) -> None:
    """QLinearConv: a convolution of quantized numbers, its result quantized again."""
    params: list[Param] = []
    given: list[TensorInfo] = []
    last = bool(node.int_attr("channels_last"))
    x = first_channels(node, node.input("x")) if last else node.input("x")
    if node.stored("w"):
        params.append(node.param("w", "weight", "weight"))
    else:
        given.append(node.input("w"))
    if node.stored("B"):
        params.append(node.param("B", "bias", "bias"))
    elif node.has("B") and not node.stored("w"):
        given.append(node.input("B"))
    params.extend(scales(node, "x_scale", "x_zero_point", "w_scale", "w_zero_point"))
    kernel = node.shape("w")
    assert x.shape is not None
    groups = node.int_attr("group", 1)
    if len(kernel) != len(x.shape) or groups < 1 or x.shape[1] != kernel[1] * groups:
        raise ShapeError(f"a convolution of {x.shape} by {kernel} in {groups} groups")
    attrs = at.Conv(window(node, kernel[2:]), kernel[0], groups, node.has("B"))
    y = node.emit("conv", (x, *given), attrs, params=params, part="conv")[0]
    requantize(node, y, "y_scale", "y_zero_point", last=last)


def first_channels(node: OnnxNode, x: TensorInfo) -> TensorInfo:
    """A channels-last tensor in channels-first order, at no cost."""
    assert x.shape is not None
    attrs = at.DeclaredOutputs(((x.shape[0], x.shape[-1], *x.shape[1:-1]),), (x.dtype,))
    return node.emit("select", (x,), attrs, part="channels_first")[0]


def requantize(
    node: OnnxNode, x: TensorInfo, scale: InputId, zero: InputId, *, last: bool = False
) -> None:
    """The output: quantized to the dtype of its zero point, channels last if `last`."""
    dtype = node.dtype(zero) if node.has(zero) else x.dtype
    attrs, params = at.Quantize(dtype), scales(node, scale, zero)
    y = node.emit("quantize", (x,), attrs, params=params, part="rounded" if last else "")[0]
    if last:
        assert y.shape is not None
        shape = (y.shape[0], *y.shape[2:], y.shape[1])
        node.emit_shaped("select", (y,), (shape,), (dtype,))


def linear_matmul(node: OnnxNode) -> None:
    """QLinearMatMul."""
    more = scales(node, "a_scale", "a_zero_point", "b_scale", "b_zero_point")
    requantize(node, product(node, node.input("a"), "b", more), "y_scale", "y_zero_point")


def dequantized(node: OnnxNode, which: str, part: str, *, role: Role = "weight") -> TensorInfo:
    """A quantized input as floats; its scale and zero point are the two inputs after it."""
    n = node.index(which)
    mark_quantized(node, n)
    attrs = at.Quantize(node.dtype(n))
    params = scales(node, n + 1, n + 2)
    return node.emit("dequantize", (node.input(n),), attrs, params=params, part=part, roles=role)[0]


def linear_binary(node: OnnxNode) -> None:
    """QLinearAdd, QLinearMul: both inputs dequantized, the result quantized."""
    op = "add" if node.op == "QLinearAdd" else "mul"
    role: Role = "bias" if op == "add" else "scale"
    both = [dequantized(node, name, name.lower(), role=role) for name in ("A", "B")]
    requantize(node, node.emit(op, both, part=op)[0], "C_scale", "C_zero_point")


def linear_unary(node: OnnxNode) -> None:
    """QLinearSigmoid, QLinearLeakyRelu, QLinearSoftmax."""
    x = dequantized(node, "X", "x")
    attrs: at.Activation | at.Softmax | None = None
    op = {"QLinearSigmoid": "sigmoid", "QLinearLeakyRelu": "leaky_relu"}.get(node.op, "softmax")
    if op == "leaky_relu":
        attrs = at.Activation(node.float_attr("alpha", 0.01))
    elif op == "softmax":
        rank = len(node.shape("X"))
        old = node.int_attr("opset", 13) < 13
        axis = node.int_attr("axis", -1)
        attrs = at.Softmax(axis, tail=old and axis % max(rank, 1) != rank - 1)
    requantize(node, node.emit(op, (x,), attrs, part=op)[0], 3, 4)  # names differ in case


def linear_pool(node: OnnxNode) -> None:
    """QLinearAveragePool, QLinearGlobalAveragePool: means of quantized numbers, quantized again."""
    last = bool(node.int_attr("channels_last"))
    x = first_channels(node, node.input("X")) if last else node.input("X")
    assert x.shape is not None
    params = scales(node, "x_scale", "x_zero_point")
    if node.op == "QLinearGlobalAveragePool":
        y = node.emit("global_avg_pool", (x,), params=params, part="mean")[0]
    else:
        padded = bool(node.int_attr("count_include_pad"))
        attrs = at.Pool(window(node, node.ints_attr("kernel_shape")), padded)
        y = node.emit("avg_pool", (x,), attrs, params=params, part="mean")[0]
    requantize(node, y, "y_scale", "y_zero_point", last=last)


def linear_mean(node: OnnxNode) -> None:
    """QLinearReduceMean."""
    attrs = at.Reduce(node.ints_attr("axes"), keep=bool(node.int_attr("keepdims", 1)))
    params = scales(node, "data_scale", "data_zero_point")
    y = node.emit("reduce_mean", (node.input("data"),), attrs, params=params, part="mean")[0]
    requantize(node, y, "reduced_scale", "reduced_zero_point")


def linear_concat(node: OnnxNode) -> None:
    """QLinearConcat: each of the variadic inputs is followed by its scale and zero point."""
    indices = range(node.index("inputs"), len(node.inputs), 3)
    for n in indices:
        mark_quantized(node, n)
    params = tuple(param for n in indices for param in scales(node, n + 1, n + 2))
    attrs = at.Concat(node.int_attr("axis"))
    parts = [node.input(n) for n in indices]
    y = node.emit("concat", parts, attrs, params=params, part="concat")[0]
    requantize(node, y, "Y_scale", "Y_zero_point")


def linear_where(node: OnnxNode) -> None:
    """QLinearWhere: both sides dequantized, the selected one quantized."""
    left, right = dequantized(node, "X", "x"), dequantized(node, "Y", "y")
    y = node.emit("where", (node.input("condition"), left, right), part="where")[0]
    requantize(node, y, "z_scale", "z_zero_point")


def linear_gemm(node: OnnxNode) -> None:
    """QGemm: a product of quantized matrices with an int32 bias; floats without an output scale."""
    a, b = node.shape("A"), node.shape("B")
    across, down = bool(node.int_attr("transA")), bool(node.int_attr("transB"))
    if len(a) != 2 or len(b) != 2:
        raise ShapeError(f"a matrix product of {a} by {b}, expected two axes each")
    inner, features = (b[1], b[0]) if down else b
    if a[0 if across else 1] != inner:
        raise ShapeError(f"matrix product of {a} by {b}: {inner} does not agree")
    more = scales(node, "a_scale", "a_zero_point", "b_scale", "b_zero_point")
    mark_quantized(node, "B")
    left = node.input("A")
    if node.stored("B") and not across:
        params = [node.param("B", "weight", "weight"), *more]
        biased = node.stored("C")
        if biased:
            params.append(node.param("C", "bias", "bias"))
        attrs = at.Linear(features, bias=biased)
        y = node.emit("linear", (left,), attrs, params=params, part="product")[0]
    else:
        turns = at.MatMul(across, down)
        biased = False
        y = node.emit("matmul", (left, node.input("B")), turns, params=more, part="product")[0]
    if node.has("C") and not biased:
        mark_quantized(node, "C")
        y = node.emit("add", (y, node.input("C")), part="bias", roles="bias")[0]
    if node.has("y_scale"):
        requantize(node, y, "y_scale", "y_zero_point")
    else:
        node.emit("dequantize", (y,), at.Quantize(node.dtype("A")), params=())


def dynamic_matmul(node: OnnxNode) -> None:
    """DynamicQuantizeMatMul: the left side is quantized by its range first."""
    x = node.input("A")
    node.emit("reduce_min", (x,), at.Reduce(), part="min")
    node.emit("reduce_max", (x,), at.Reduce(), part="max")
    left = node.emit("quantize", (x,), at.Quantize("uint8"), params=(), part="quantize")[0]
    _to_float(node, product(node, left, "B", scales(node, "b_scale", "b_zero_point")))


def float_matmul(node: OnnxNode) -> None:
    """MatMulIntegerToFloat."""
    more = scales(node, "a_scale", "a_zero_point", "b_scale", "b_zero_point")
    _to_float(node, product(node, node.input("A"), "B", more))


def _to_float(node: OnnxNode, x: TensorInfo) -> None:
    """The output: a product of quantized numbers as floats, with a bias."""
    attrs = at.Quantize(x.dtype)
    bias = node.optional("bias")
    part = "widened" if bias is not None else ""
    y = node.emit("dequantize", (x,), attrs, params=(), part=part)[0]
    if bias is not None:
        node.emit("add", (y, bias), roles="bias")


def ordered(node: OnnxNode) -> None:
    """QuantizeWithOrder, DequantizeWithOrder: int8 in another memory order."""
    op = "quantize" if node.op == "QuantizeWithOrder" else "dequantize"
    params = scales(node, "scale_input")
    node.emit(op, (node.input("input"),), at.Quantize("int8"), params=params)


def integer_mul(node: OnnxNode) -> None:
    """MulInteger: zero points subtracted, products in 32 bits."""
    sides = []
    for name in ("A", "B"):
        mark_quantized(node, name)
        zero = f"{name}_zero_point"
        params, side = scales(node, zero), node.input(name)
        if node.has(zero):
            side = node.emit("sub", (side,), params=params, part=name.lower())[0]
        sides.append(side)
    y = node.emit("mul", sides, part="product")[0]
    node.emit("cast", (y,), at.Cast("int32"))


def cast(node: OnnxNode) -> None:
    """Cast, CastLike, BitCast."""
    dtype = cast_dtype(node.attrs.get("to", 0))
    if node.op == "CastLike":
        dtype = node.dtype("target_type")
    elif node.op == "BitCast" and not dtype:
        dtype = node.dtype("input")
    node.emit("cast", (node.input("input"),), at.Cast(dtype))


OPERATORS: ConverterTable = {
    ("", "QuantizeLinear"): Converter(quantize, "x y_scale y_zero_point"),
    ("", "DequantizeLinear"): Converter(dequantize, "x x_scale x_zero_point"),
    ("com.microsoft", "QuantizeLinear"): Converter(quantize, "x y_scale y_zero_point"),
    ("com.microsoft", "DequantizeLinear"): Converter(dequantize, "x x_scale x_zero_point"),
    ("", "DynamicQuantizeLinear"): Converter(dynamic_quantize, "x"),
    ("", "MatMulInteger"): Converter(integer_matmul, "A B a_zero_point b_zero_point"),
    ("", "ConvInteger"): Converter(integer_conv, "x w x_zero_point w_zero_point"),
    ("", "QLinearConv"): Converter(
        linear_conv, "x x_scale x_zero_point w w_scale w_zero_point y_scale y_zero_point B"
    ),
    ("com.microsoft", "QLinearConv"): Converter(
        linear_conv, "x x_scale x_zero_point w w_scale w_zero_point y_scale y_zero_point B"
    ),
    ("", "QLinearMatMul"): Converter(
        linear_matmul, "a a_scale a_zero_point b b_scale b_zero_point y_scale y_zero_point"
    ),
    ("com.microsoft", "MatMulInteger16"): Converter(integer_matmul, "A B"),
    ("com.microsoft", "MulInteger"): Converter(integer_mul, "A A_zero_point B B_zero_point"),
    ("com.microsoft", "QLinearAdd"): Converter(
        linear_binary, "A A_scale A_zero_point B B_scale B_zero_point C_scale C_zero_point"
    ),
    ("com.microsoft", "QLinearMul"): Converter(
        linear_binary, "A A_scale A_zero_point B B_scale B_zero_point C_scale C_zero_point"
    ),
    ("com.microsoft", "QLinearSigmoid"): Converter(
        linear_unary, "X X_scale X_zero_point Y_scale Y_zero_point"
    ),
    ("com.microsoft", "QLinearLeakyRelu"): Converter(
        linear_unary, "X X_scale X_zero_point Y_scale Y_zero_point"
    ),
    ("com.microsoft", "QLinearSoftmax"): Converter(
        linear_unary, "X X_scale x_zero_point y_scale y_zero_point"
    ),
    ("com.microsoft", "QLinearAveragePool"): Converter(
        linear_pool, "X x_scale x_zero_point y_scale y_zero_point"
    ),
    ("com.microsoft", "QLinearGlobalAveragePool"): Converter(
        linear_pool, "X x_scale x_zero_point y_scale y_zero_point"
    ),
    ("com.microsoft", "QLinearReduceMean"): Converter(
        linear_mean, "data data_scale data_zero_point reduced_scale reduced_zero_point"
    ),
    ("com.microsoft", "QLinearConcat"): Converter(linear_concat, "Y_scale Y_zero_point inputs"),
    ("com.microsoft", "QLinearWhere"): Converter(
        linear_where, "condition X x_scale x_zero_point Y y_scale y_zero_point z_scale z_zero_point"
    ),
    ("com.microsoft", "QGemm"): Converter(
        linear_gemm, "A a_scale a_zero_point B b_scale b_zero_point C y_scale y_zero_point"
    ),
    ("com.microsoft", "DynamicQuantizeMatMul"): Converter(
        dynamic_matmul, "A B b_scale b_zero_point bias"
    ),
    ("com.microsoft", "MatMulIntegerToFloat"): Converter(
        float_matmul, "A B a_scale b_scale a_zero_point b_zero_point bias"
    ),
    ("com.microsoft", "QuantizeWithOrder"): Converter(ordered, "input scale_input"),
    ("com.microsoft", "DequantizeWithOrder"): Converter(ordered, "input scale_input"),
    ("", "Cast"): Converter(cast, "input"),
    ("", "CastLike"): Converter(cast, "input target_type"),
    ("", "BitCast"): Converter(cast, "input"),
}
