"""Narrow numbers: rounding to them and back, and products of them."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.known import Known
from layerscope.formats.onnx.numbers import DTYPES
from layerscope.formats.onnx.operators.convolution import conv_attributes
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Param


def scales(s: Site, *places: int) -> tuple[Param, ...]:
    """Scales and zero points, which calibration set: buffers where the file stores them."""
    return tuple(
        s.param(n, f"{'scale' if n % 2 else 'zero_point'}{n}", "statistic")
        for n in places
        if s.stored(n)
    )


def quantize(s: Site) -> None:
    """QuantizeLinear: the zero point tells the type."""
    dtype = s.dtype(2) if s.has(2) else DTYPES.get(s.whole("output_dtype"), "uint8")
    told = at.Quantize(dtype, per_channel=bool(s.has(1) and s.shape(1)))
    s.emit("quantize", (s.given(0),), told, params=_pair(s))


def dequantize(s: Site) -> None:
    """DequantizeLinear: the scale tells the type."""
    told = at.Quantize(s.dtype(0), per_channel=bool(s.has(1) and s.shape(1)))
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
    if s.stored(3):
        params.append(s.param(3, "weight", "weight"))
    else:
        given.append(s.given(3))
    if s.stored(8):
        params.append(s.param(8, "bias", "bias"))
    params.extend(scales(s, 1, 2, 4, 5))
    told = conv_attributes(s, kernel=3, bias=s.has(8))
    made = s.emit("conv", (s.given(0), *given), told, params=params, part="conv")[0]
    _rounded(s, made, 6, 7)


def _rounded(s: Site, made: Known, scale: int, zero: int) -> None:
    dtype = s.dtype(zero) if s.has(zero) else "uint8"
    s.emit("quantize", (made,), at.Quantize(dtype), params=scales(s, scale, zero))


def linear_matmul(s: Site) -> None:
    """QLinearMatMul: a, its scale and zero; b, its scale and zero; y's scale and zero."""
    made = product(s, s.given(0), 3, scales(s, 1, 2, 4, 5), part="product")
    _rounded(s, made, 6, 7)


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
}
