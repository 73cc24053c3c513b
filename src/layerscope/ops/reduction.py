"""Reductions over axes."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Reduce
from layerscope.graph.types import Shape, elements
from layerscope.ops.access_map import SAME, AccessMap, Map
from layerscope.ops.autograd import SavedRule, both, first_input, nothing
from layerscope.ops.spec import FREE, Call, Ops, OpSpec, OpsRule, OutDtype, axis_of


def _axes(call: Call) -> tuple[int, ...]:
    a: Reduce = call.attributes or Reduce()
    rank = len(call.x)
    if a.tail:
        if not a.axes:
            raise ShapeError("a reduction of the last axes, expected the first of them")
        return tuple(range(axis_of(a.axes[0], rank), rank))
    axes = tuple([axis_of(axis, rank) for axis in a.axes]) if a.axes else tuple(range(rank))
    if len({*axes}) < len(axes):
        raise ShapeError(f"axes {axes}, one of them twice")
    return axes


def _shape(call: Call) -> tuple[Shape, ...]:
    axes, keep = _axes(call), (call.attributes or Reduce()).keep
    return (
        tuple(
            1 if axis in axes else size
            for axis, size in enumerate(call.x)
            if keep or axis not in axes
        ),
    )


def _access(call: Call) -> tuple[AccessMap, ...]:
    axes, keep = _axes(call), (call.attributes or Reduce()).keep
    left = [axis for axis in range(len(call.x)) if axis not in axes]
    access: dict[int, tuple[int, Map]] = {
        axis: (axis if keep else n, SAME) for n, axis in enumerate(left)
    }
    return (access,)


# (per input element, per output element); one operation less than elements joins them
KINDS = {
    "reduce_sum": (Ops(add=1), Ops(add=-1)),
    "reduce_mean": (Ops(add=1), Ops(add=-1, div=1)),
    "reduce_max": (Ops(comp=1), Ops(comp=-1)),
    "reduce_min": (Ops(comp=1), Ops(comp=-1)),
    "reduce_prod": (Ops(mul=1), Ops(mul=-1)),
    "reduce_l1": (Ops(comp=1, add=1), Ops(add=-1)),
    "reduce_sum_square": (Ops(mul=1, add=1), Ops(add=-1)),
    "reduce_l2": (Ops(mul=1, add=1), Ops(add=-1, exp=1)),
    "reduce_log_sum": (Ops(add=1), Ops(add=-1, exp=1)),
    "reduce_log_sum_exp": (Ops(exp=1, add=1), Ops(add=-1, exp=1)),
    # the mean, what is left of every element without it, the mean of their squares
    "reduce_var": (Ops(add=3, mul=1), Ops(add=-2, div=2)),
    "reduce_std": (Ops(add=3, mul=1), Ops(add=-2, div=2, exp=1)),
    "reduce_any": (Ops(comp=1), Ops(comp=-1)),
    "reduce_all": (Ops(comp=1), Ops(comp=-1)),
    "arg_max": (Ops(comp=1), Ops(comp=-1)),
    "arg_min": (Ops(comp=1), Ops(comp=-1)),
}


def _ops(kind: str) -> OpsRule:
    per_input, once = KINDS[kind]
    return lambda call: per_input * elements(call.x) + once * elements(call.y)


OUT_DTYPES: dict[str, OutDtype] = {
    "arg_max": "int64",
    "arg_min": "int64",
    "reduce_any": "bool",
    "reduce_all": "bool",
}


NORMS = ("reduce_l1", "reduce_l2")  # real, of complex numbers too


def _saves(kind: str) -> SavedRule:
    if kind in OUT_DTYPES or kind in ("reduce_sum", "reduce_mean"):
        return nothing
    if kind == "reduce_var":
        return first_input
    return both


SPECS = {
    kind: OpSpec(
        family="reduction",
        attributes=Reduce,
        shape=_shape,
        ops=_ops(kind),
        access_map=_access,
        backward=(lambda call: (FREE, FREE))
        if kind in OUT_DTYPES or kind == "reduce_sum"
        else (lambda call: (Ops(mul=elements(call.x)), FREE)),
        saved_for_backward=_saves(kind),
        out_dtypes=(OUT_DTYPES[kind],)
        if kind in OUT_DTYPES
        else ("real",)
        if kind in NORMS
        else (),
    )
    for kind in KINDS
}
