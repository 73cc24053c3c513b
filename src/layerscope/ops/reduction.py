"""Reductions over axes."""

from __future__ import annotations

from layerscope.graph.attributes import Reduce
from layerscope.graph.types import Shape, elements
from layerscope.ops.reach import SAME, Map, Reach
from layerscope.ops.rule import FREE, Call, Ops, OpsRule, Rule, axis_of
from layerscope.ops.saved import Saved, nothing


def _axes(call: Call) -> tuple[int, ...]:
    a: Reduce = call.attributes or Reduce()
    rank = len(call.x)
    if a.tail:
        return tuple(range(axis_of(a.axes[0], rank), rank))
    return tuple(axis_of(axis, rank) for axis in a.axes) if a.axes else tuple(range(rank))


def _shape(call: Call) -> tuple[Shape, ...]:
    axes, keep = _axes(call), (call.attributes or Reduce()).keep
    return (
        tuple(
            1 if axis in axes else size
            for axis, size in enumerate(call.x)
            if keep or axis not in axes
        ),
    )


def _reach(call: Call) -> tuple[Reach, ...]:
    axes, keep = _axes(call), (call.attributes or Reduce()).keep
    left = [axis for axis in range(len(call.x)) if axis not in axes]
    reach: dict[int, tuple[int, Map]] = {
        axis: (axis if keep else place, SAME) for place, axis in enumerate(left)
    }
    return (reach,)


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
    "arg_max": (Ops(comp=1), Ops(comp=-1)),
    "arg_min": (Ops(comp=1), Ops(comp=-1)),
}


def _ops(kind: str) -> OpsRule:
    each, once = KINDS[kind]
    return lambda call: each * elements(call.x) + once * elements(call.y)


RULES = {
    kind: Rule(
        family="reduction",
        shape=_shape,
        ops=_ops(kind),
        reach=_reach,
        backward=(lambda call: (FREE, FREE))
        if kind.startswith("arg") or kind == "reduce_sum"
        else (lambda call: (Ops(mul=elements(call.x)), FREE)),
        saves=nothing
        if kind.startswith("arg") or kind in ("reduce_sum", "reduce_mean")
        else (lambda call: Saved(inputs=(0,), output=True)),
        makes=("int64",) if kind.startswith("arg") else (),
    )
    for kind in KINDS
}
