"""Reductions, and sums along the way."""

from __future__ import annotations

from layerscope.formats.onnx.arrays import axes_of
from layerscope.formats.onnx.operators.activations import UNARY
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.ops.spec import axis_of

KINDS = {
    "ReduceSum": "reduce_sum", "ReduceMean": "reduce_mean", "ReduceMax": "reduce_max",
    "ReduceMin": "reduce_min", "ReduceProd": "reduce_prod", "ReduceL1": "reduce_l1",
    "ReduceL2": "reduce_l2", "ReduceSumSquare": "reduce_sum_square",
    "ReduceLogSum": "reduce_log_sum", "ReduceLogSumExp": "reduce_log_sum_exp",
}  # fmt: skip
PLACES = {"ArgMax": "arg_max", "ArgMin": "arg_min"}
assert not set(KINDS) & set(UNARY)


def reduce(s: Site) -> None:
    """A reduction over axes that are told, or an input since opset 13 or 18."""
    if s.has(1):
        s.need(1)
    axes = axes_of(s.told, [None, s.value(1)])
    if not axes and s.whole("noop_with_empty_axes"):
        s.alias(s.given(0))
        return
    told = at.Reduce(axes or (), keep=bool(s.whole("keepdims", 1)))
    s.emit(KINDS[s.op], (s.given(0),), told)


def place(s: Site) -> None:
    """Where the largest or smallest is."""
    told = at.Reduce((s.whole("axis"),), keep=bool(s.whole("keepdims", 1)))
    s.emit(PLACES[s.op], (s.given(0),), told)


def cumulate(s: Site) -> None:
    """CumSum, CumProd."""
    x, axes = s.shape(0), s.value(1)
    op = "cum_prod" if s.op == "CumProd" else "cum_sum"
    if axes is not None:
        s.emit(op, (s.given(0),), at.CumSum(axis_of(int(axes.item), len(x))))
        return
    longest = x.index(max(x)) if x else 0
    note = f"a bound: along the longest axis, as {s.unknown_value(1)}"
    s.emit(op, (s.given(0),), at.CumSum(longest), estimate=True, note=note)


OPERATORS: dict[tuple[str, str], Convert] = {
    **{("", op): reduce for op in KINDS},
    **{("", op): place for op in PLACES},
    ("", "CumSum"): cumulate,
    ("", "CumProd"): cumulate,
}
