"""Narrow numbers: rounding to them and back, and products of them."""

from __future__ import annotations

from typing import Any

from layerscope.errors import ShapeError
from layerscope.formats.onnx.known import Known
from layerscope.formats.onnx.numbers import DTYPES
from layerscope.formats.onnx.operators.convolution import conv_attributes
from layerscope.formats.onnx.operators.windows import window
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, Role


def scales(s: Site, *places: int) -> tuple[Param, ...]:
    """Scales and zero points in turn, which calibration set: buffers where the file stores them."""
    return tuple(
        s.param(n, f"{'zero_point' if turn % 2 else 'scale'}{n}", "statistic")
        for turn, n in enumerate(places)
        if s.stored(n)
    )


def learned(s: Site, n: int) -> None:
    """The n-th input, if the file stores it, stands for learned numbers, though it is of whole."""
    entry = s.given(n).entry
    if entry is not None:
        entry.narrow = True


def quantize(s: Site) -> None:
    """QuantizeLinear: the zero point tells the type."""
    dtype = s.dtype(2) if s.has(2) else DTYPES.get(s.whole("output_dtype"), "uint8")
    told = at.Quantize(dtype, per_channel=bool(s.has(1) and s.shape(1)))
    s.emit("quantize", (s.given(0),), told, params=_pair(s))


def dequantize(s: Site) -> None:
    """DequantizeLinear: the scale tells the type."""
    told = at.Quantize(s.dtype(0), per_channel=bool(s.has(1) and s.shape(1)))
    learned(s, 0)
    s.emit("dequantize", (s.given(0),), told, params=_pair(s))


def _pair(s: Site) -> tuple[Param, ...]:
    names = {1: "scale", 2: "zero_point"}
    return tuple(s.param(n, name, "statistic") for n, name in names.items() if s.stored(n))


def dynamic(s: Site) -> None:
    """DynamicQuantizeLinear: the range is looked up, then rounded to."""
    x, names = s.given(0), s.operator.outputs
    low = s.emit("reduce_min", (x,), at.Reduce(), part="min")[0]
    high = s.emit("reduce_max", (x,), at.Reduce(), part="max")[0]
    span = s.emit("sub", (high, low), part="range")[0]
    s.emit("div", (span,), part="scale", outputs=names[1:2])
    zero = s.emit("div", (low,), part="point")[0]
    s.emit("cast", (zero,), at.Cast("uint8"), part="zero_point", outputs=names[2:3])
    s.emit("quantize", (x,), at.Quantize("uint8"), outputs=names[:1])


def _right(s: Site, n: int) -> tuple[int, ...]:
    shape = s.shape(n)
    if len(shape) < 2:
        raise ShapeError(f"a matrix product by {shape}")
    return shape


def product(
    s: Site,
    x: Known,
    n: int,
    more: tuple[Param, ...],
    *,
    part: str = "",
    bias: int | None = None,
) -> Known:
    """The product by the n-th input, a linear layer where that is an array of the file."""
    shape = _right(s, n)
    learned(s, n)
    if s.stored(n) and len(shape) == 2:
        if x.shape is None or x.shape[-1] != shape[0]:
            raise ShapeError(f"matrix product of {x.shape} by {shape}")
        params = [s.param(n, "weight", "weight"), *more]
        biased = bias is not None and s.stored(bias)
        if bias is not None and biased:
            params.append(s.param(bias, "bias", "bias"))
        told = at.Linear(shape[1], bias=biased)
        return s.emit("linear", (x,), told, params=params, part=part)[0]
    return s.emit("matmul", (x, s.given(n)), params=more, part=part)[0]


def integer_matmul(s: Site) -> None:
    """MatMulInteger: sums of 32 bits."""
    made = product(s, s.given(0), 1, scales(s, 2, 3), part="product")
    s.emit("cast", (made,), at.Cast("int32"))


def integer_conv(s: Site) -> None:
    """ConvInteger: sums of 32 bits."""
    params = (s.param(1, "weight", "weight"), *scales(s, 2, 3)) if s.stored(1) else ()
    more = () if s.stored(1) else (s.given(1),)
    told = conv_attributes(s, bias=False)
    made = s.emit("conv", (s.given(0), *more), told, params=params, part="conv")[0]
    s.emit("cast", (made,), at.Cast("int32"))


def linear_conv(s: Site) -> None:
    """QLinearConv: x, its scale and zero; w, its scale and zero; y's scale and zero; bias."""
    params: list[Param] = []
    given: list[Known] = []
    last = bool(s.whole("channels_last"))
    x = first_channels(s, s.given(0)) if last else s.given(0)
    if s.stored(3):
        params.append(s.param(3, "weight", "weight"))
    else:
        given.append(s.given(3))
    if s.stored(8):
        params.append(s.param(8, "bias", "bias"))
    elif s.has(8) and not s.stored(3):
        given.append(s.given(8))
    params.extend(scales(s, 1, 2, 4, 5))
    kernel = s.shape(3)
    assert x.shape is not None
    groups = s.whole("group", 1)
    if len(kernel) != len(x.shape) or groups < 1 or x.shape[1] != kernel[1] * groups:
        raise ShapeError(f"a convolution of {x.shape} by {kernel} in {groups} groups")
    told = at.Conv(window(s, kernel[2:]), kernel[0], groups, s.has(8))
    made = s.emit("conv", (x, *given), told, params=params, part="conv")[0]
    rounded(s, made, 6, 7, last=last)


def first_channels(s: Site, x: Known) -> Known:
    """A tensor with its channels last, as one that has them in front; a matter of naming."""
    assert x.shape is not None
    told = at.DeclaredOutputs(((x.shape[0], x.shape[-1], *x.shape[1:-1]),), (x.dtype,))
    return s.emit("select", (x,), told, part="channels_first")[0]


def rounded(s: Site, made: Known, scale: int, zero: int, *, last: bool = False) -> None:
    """The result in the narrow type of its zero point."""
    dtype = s.dtype(zero) if s.has(zero) else made.dtype
    told, params = at.Quantize(dtype), scales(s, scale, zero)
    made = s.emit("quantize", (made,), told, params=params, part="rounded" if last else "")[0]
    if last:
        assert made.shape is not None
        shape = (made.shape[0], *made.shape[2:], made.shape[1])
        s.told_node("select", (made,), (shape,), (dtype,))


def linear_matmul(s: Site) -> None:
    """QLinearMatMul: a, its scale and zero; b, its scale and zero; y's scale and zero."""
    made = product(s, s.given(0), 3, scales(s, 1, 2, 4, 5), part="product")
    rounded(s, made, 6, 7)


def widened(s: Site, n: int, part: str, *, role: Role = "weight") -> Known:
    """The n-th input, with its scale and zero point behind it, as floats."""
    learned(s, n)
    told = at.Quantize(s.dtype(n))
    params = scales(s, n + 1, n + 2)
    return s.emit("dequantize", (s.given(n),), told, params=params, part=part, roles=role)[0]


def linear_binary(s: Site) -> None:
    """QLinearAdd, QLinearMul: both widened, the result rounded."""
    op = "add" if s.op == "QLinearAdd" else "mul"
    role: Role = "bias" if op == "add" else "scale"
    both = [widened(s, n, part, role=role) for n, part in ((0, "a"), (3, "b"))]
    rounded(s, s.emit(op, both, part=op)[0], 6, 7)


def linear_unary(s: Site) -> None:
    """QLinearSigmoid, QLinearLeakyRelu, QLinearSoftmax."""
    x = widened(s, 0, "x")
    told: Any = None
    op = {"QLinearSigmoid": "sigmoid", "QLinearLeakyRelu": "leaky_relu"}.get(s.op, "softmax")
    if op == "leaky_relu":
        told = at.Activation(s.real("alpha", 0.01))
    elif op == "softmax":
        rank = len(s.shape(0))
        old = s.whole("opset", 13) < 13
        axis = s.whole("axis", -1)
        told = at.Softmax(axis, tail=old and axis % max(rank, 1) != rank - 1)
    rounded(s, s.emit(op, (x,), told, part=op)[0], 3, 4)


def linear_pool(s: Site) -> None:
    """QLinearAveragePool, QLinearGlobalAveragePool: means of narrow numbers, rounded anew."""
    last = bool(s.whole("channels_last"))
    x = first_channels(s, s.given(0)) if last else s.given(0)
    assert x.shape is not None
    params = scales(s, 1, 2)
    if s.op == "QLinearGlobalAveragePool":
        made = s.emit("global_avg_pool", (x,), params=params, part="mean")[0]
    else:
        told = at.Pool(window(s, s.wholes("kernel_shape")), bool(s.whole("count_include_pad")))
        made = s.emit("avg_pool", (x,), told, params=params, part="mean")[0]
    rounded(s, made, 3, 4, last=last)


def linear_mean(s: Site) -> None:
    """QLinearReduceMean."""
    told = at.Reduce(s.wholes("axes"), keep=bool(s.whole("keepdims", 1)))
    made = s.emit("reduce_mean", (s.given(0),), told, params=scales(s, 1, 2), part="mean")[0]
    rounded(s, made, 3, 4)


def linear_concat(s: Site) -> None:
    """QLinearConcat: the result's scale and zero first, then each input with its own."""
    places = range(2, len(s.inputs), 3)
    for n in places:
        learned(s, n)
    params = tuple(param for n in places for param in scales(s, n + 1, n + 2))
    told = at.Concat(s.whole("axis"))
    made = s.emit("concat", [s.given(n) for n in places], told, params=params, part="concat")[0]
    rounded(s, made, 0, 1)


def linear_where(s: Site) -> None:
    """QLinearWhere: both sides widened, the chosen rounded."""
    left, right = widened(s, 1, "x"), widened(s, 4, "y")
    made = s.emit("where", (s.given(0), left, right), part="where")[0]
    rounded(s, made, 7, 8)


def linear_gemm(s: Site) -> None:
    """QGemm: a, b and y with scales and zeros, a bias of 32 bits; without y's it makes floats."""
    a, b = s.shape(0), s.shape(3)
    across, down = bool(s.whole("transA")), bool(s.whole("transB"))
    if len(a) != 2 or len(b) != 2:
        raise ShapeError(f"a matrix product of {a} by {b}, expected two axes each")
    inner, features = (b[1], b[0]) if down else b
    if a[0 if across else 1] != inner:
        raise ShapeError(f"matrix product of {a} by {b}: {inner} does not agree")
    more = scales(s, 1, 2, 4, 5)
    learned(s, 3)
    if s.stored(3) and not across:
        params = [s.param(3, "weight", "weight"), *more]
        biased = s.stored(6)
        if biased:
            params.append(s.param(6, "bias", "bias"))
        told = at.Linear(features, bias=biased)
        made = s.emit("linear", (s.given(0),), told, params=params, part="product")[0]
    else:
        turns = at.MatMul(across, down)
        biased = False
        made = s.emit("matmul", (s.given(0), s.given(3)), turns, params=more, part="product")[0]
    if s.has(6) and not biased:
        learned(s, 6)
        made = s.emit("add", (made, s.given(6)), part="bias", roles="bias")[0]
    if s.has(7):
        rounded(s, made, 7, 8)
    else:
        s.emit("dequantize", (made,), at.Quantize(s.dtype(0)), params=())


def dynamic_matmul(s: Site) -> None:
    """DynamicQuantizeMatMul: the left side is rounded to its range first."""
    x = s.given(0)
    s.emit("reduce_min", (x,), at.Reduce(), part="min")
    s.emit("reduce_max", (x,), at.Reduce(), part="max")
    narrow = s.emit("quantize", (x,), at.Quantize("uint8"), params=(), part="quantize")[0]
    _back(s, product(s, narrow, 1, scales(s, 2, 3), part="product"), 4)


def float_matmul(s: Site) -> None:
    """MatMulIntegerToFloat: a, b, their scales, their zeros, a bias."""
    _back(s, product(s, s.given(0), 1, scales(s, 2, 4, 3, 5), part="product"), 6)


def _back(s: Site, made: Known, bias: int) -> None:
    """A product of narrow numbers as floats, a bias added to those."""
    told = at.Quantize(made.dtype)
    part = "widened" if s.has(bias) else ""
    made = s.emit("dequantize", (made,), told, params=(), part=part)[0]
    if s.has(bias):
        s.emit("add", (made, s.given(bias)), roles="bias")


def ordered(s: Site) -> None:
    """QuantizeWithOrder and back: narrow numbers in another order of memory."""
    if s.op == "QuantizeWithOrder":
        s.emit("quantize", (s.given(0),), at.Quantize("int8"), params=scales(s, 1))
    else:
        s.emit("dequantize", (s.given(0),), at.Quantize("int8"), params=scales(s, 1))


def integer_mul(s: Site) -> None:
    """MulInteger: zero points taken off, products of 32 bits."""
    sides = []
    for n, part in ((0, "a"), (2, "b")):
        learned(s, n)
        zero = scales(s, n + 1)
        side = s.given(n)
        sides.append(s.emit("sub", (side,), params=zero, part=part)[0] if s.has(n + 1) else side)
    made = s.emit("mul", sides, part="product")[0]
    s.emit("cast", (made,), at.Cast("int32"))


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "QuantizeLinear"): quantize,
    ("", "DequantizeLinear"): dequantize,
    ("com.microsoft", "QuantizeLinear"): quantize,
    ("com.microsoft", "DequantizeLinear"): dequantize,
    ("", "DynamicQuantizeLinear"): dynamic,
    ("", "MatMulInteger"): integer_matmul,
    ("", "ConvInteger"): integer_conv,
    ("", "QLinearConv"): linear_conv,
    ("com.microsoft", "QLinearConv"): linear_conv,
    ("", "QLinearMatMul"): linear_matmul,
    ("com.microsoft", "MatMulInteger16"): integer_matmul,
    ("com.microsoft", "MulInteger"): integer_mul,
    ("com.microsoft", "QLinearAdd"): linear_binary,
    ("com.microsoft", "QLinearMul"): linear_binary,
    ("com.microsoft", "QLinearSigmoid"): linear_unary,
    ("com.microsoft", "QLinearLeakyRelu"): linear_unary,
    ("com.microsoft", "QLinearSoftmax"): linear_unary,
    ("com.microsoft", "QLinearAveragePool"): linear_pool,
    ("com.microsoft", "QLinearGlobalAveragePool"): linear_pool,
    ("com.microsoft", "QLinearReduceMean"): linear_mean,
    ("com.microsoft", "QLinearConcat"): linear_concat,
    ("com.microsoft", "QLinearWhere"): linear_where,
    ("com.microsoft", "QGemm"): linear_gemm,
    ("com.microsoft", "DynamicQuantizeMatMul"): dynamic_matmul,
    ("com.microsoft", "MatMulIntegerToFloat"): float_matmul,
    ("com.microsoft", "QuantizeWithOrder"): ordered,
    ("com.microsoft", "DequantizeWithOrder"): ordered,
}
