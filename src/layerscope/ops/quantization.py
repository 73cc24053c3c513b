"""Quantization, dequantization and casts."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Cast, Quantize
from layerscope.graph.types import Param, Shape
from layerscope.ops.autograd import nothing
from layerscope.ops.spec import Call, OpSpec, free, param, passes, per_output, same


def _scales(call: Call) -> tuple[Param, ...]:
    """Scale and zero point, which calibration sets and training does not learn."""
    a: Quantize = call.attributes or Quantize()
    shape = (call.x[1],) if a.per_channel and len(call.x) > 1 else (1,)
    return (
        param("scale", shape, "statistic", "fp32"),
        param("zero_point", shape, "statistic", a.dtype),
    )


def _told(call: Call) -> tuple[Shape, ...]:
    if call.attributes is None:
        raise ShapeError("a change of number type without the type it makes")
    return same(call)


SPECS = {
    # round(x / scale) + zero point, clipped at both ends
    "quantize": OpSpec(
        family="quantization",
        attributes=Quantize,
        shape=_told,
        ops=per_output(div=1, add=1, comp=2),
        params=_scales,
        backward=passes,
        saved_for_backward=nothing,
        out_dtypes=("attribute",),
    ),
    "dequantize": OpSpec(
        family="quantization",
        attributes=Quantize,
        shape=same,
        ops=per_output(add=1, mul=1),
        params=_scales,
        backward=passes,
        saved_for_backward=nothing,
        out_dtypes=("float",),
    ),
    "cast": OpSpec(
        family="quantization",
        attributes=Cast,
        shape=_told,
        ops=free,
        backward=passes,
        saved_for_backward=nothing,
        out_dtypes=("attribute",),
    ),
}
