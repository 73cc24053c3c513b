"""Loops and cases of quantization and casts."""

from __future__ import annotations

import math
from collections.abc import Callable

from layerscope.graph import attributes as at
from layerscope.graph.attributes import Cast, Quantize
from tests.brute.arrays import Array, Index, Run, fill
from tests.brute.case import Case
from tests.brute.domains import RANGES
from tests.brute.scalar import Scalar


def _channel(run: Run, index: Index) -> Index:
    per_channel = (run.attributes or Quantize()).per_channel and len(run.x.shape) > 1
    return (index[1],) if per_channel else (0,)


def quantize(run: Run) -> list[Array]:
    """round(x / scale) + zero point, clipped at both ends; the rounding is a change of type."""
    a: Quantize = run.attributes
    low, high = RANGES[a.dtype]

    def cell(index: Index) -> Scalar:
        at = _channel(run, index)
        steps = run.x[index] / run.params["scale"][at]
        whole = Scalar(round(steps.value), run.tally, steps.seen)
        return (whole + run.params["zero_point"][at]).larger(float(low)).smaller(float(high))

    return [fill(run.x.shape, cell)]


def dequantize(run: Run) -> list[Array]:
    def cell(index: Index) -> Scalar:
        at = _channel(run, index)
        return (run.x[index] - run.params["zero_point"][at]) * run.params["scale"][at]

    return [fill(run.x.shape, cell)]


CASTS: dict[str, Callable[[float], float]] = {
    "int64": math.trunc,
    "int8": math.trunc,
    "bool": bool,
    "fp16": float,
    "fp64": float,
}


def cast(run: Run) -> list[Array]:
    a: Cast = run.attributes
    change = CASTS[a.dtype]
    return [fill(run.x.shape, lambda i: Scalar(change(run.x[i].value), run.tally, run.x[i].seen))]


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "quantize": quantize,
    "dequantize": dequantize,
    "cast": cast,
}

Q = at.Quantize
CASES: list[Case] = [
    Case("quantize", Q(), ((2, 3, 4),)),
    Case("quantize", Q("uint8"), ((4, 3),), "unsigned"),
    Case("quantize", Q("int16", per_channel=True), ((2, 3, 2, 2),), "by-channel"),
    Case("quantize", Q(per_channel=True), ((5,),), "vector"),
    Case("dequantize", None, ((2, 3, 4),)),
    Case("dequantize", Q("uint8", per_channel=True), ((2, 3, 4),), "by-channel"),
    Case("dequantize", Q("int16"), ((6,),), "vector"),
    *(Case("cast", at.Cast(dtype), ((2, 3, 4),), dtype)
      for dtype in ("int64", "int8", "bool", "fp16", "fp64")),
]  # fmt: skip
