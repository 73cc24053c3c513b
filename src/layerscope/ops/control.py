"""What the way through a network brings about: constants, choices, counters, drawn numbers."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Counted, Told
from layerscope.graph.types import Shape
from layerscope.ops.reach import NOT_READ, Reach, everything, pointwise
from layerscope.ops.rule import FREE, Call, Ops, Rule, each, free, no_inputs, passes
from layerscope.ops.saved import every_input, nothing


def _told(call: Call) -> tuple[Shape, ...]:
    a: Told | Counted = call.attributes
    if not a.shapes or len(a.shapes) != len(a.dtypes):
        raise ShapeError(f"{len(a.shapes)} shapes and {len(a.dtypes)} number types")
    return a.shapes


def _counted(call: Call) -> Ops:
    a: Counted = call.attributes
    return Ops(a.mac, a.add, a.mul, a.comp, a.div, a.exp)


def _unread(call: Call) -> tuple[Reach, ...]:
    return (NOT_READ,) * max(len(call.inputs), len(call.outputs))


def _chosen_reach(call: Call) -> tuple[Reach, ...]:
    """One of the inputs as it is, where they are of its shape; else any part of them."""
    if len(call.outputs) > 1:
        return everything(call.outputs)
    alike = all(shape == call.y for shape in call.inputs)
    return pointwise(call.inputs, call.y) if alike else everything(call.inputs)


RULES = {
    # worked out before the run, from shapes and constants alone
    "constant": Rule(
        family="control",
        shape=_told,
        ops=free,
        reach=_unread,
        reads=no_inputs,
        backward=passes,
        saves=nothing,
        makes=("told",),
        arity=(0, None),
        known=True,
    ),
    # what one of several branches made, or a loop hands out
    "select": Rule(
        family="control",
        shape=_told,
        ops=free,
        reach=_chosen_reach,
        reads=no_inputs,
        backward=passes,
        saves=nothing,
        makes=("told",),
        arity=(0, None),
        view=True,
    ),
    "range": Rule(
        family="control",
        shape=_told,
        ops=each(add=1),
        reach=lambda call: everything(call.inputs),
        backward=passes,
        saves=nothing,
        makes=("told",),
        arity=(0, None),
    ),
    "random": Rule(
        family="control",
        shape=_told,
        ops=lambda call: Ops(mul=1, add=1) * call.out_elements,
        reach=_unread,
        reads=no_inputs,
        backward=passes,
        saves=nothing,
        makes=("told",),
        arity=(0, None),
        estimate="a generator's step for each number drawn",
    ),
    # an operator of somebody's own, counted as its owner says
    "taught": Rule(
        family="control",
        shape=_told,
        ops=_counted,
        reach=lambda call: everything(call.inputs if len(call.outputs) == 1 else call.outputs),
        backward=lambda call: (_counted(call) * 2, FREE),
        saves=every_input,
        makes=("told",),
        arity=(0, None),
    ),
    "shape_of": Rule(
        family="control",
        shape=lambda call: ((len(call.x),),),
        ops=free,
        reach=lambda call: (NOT_READ,),
        reads=no_inputs,
        backward=passes,
        saves=nothing,
        makes=("int64",),
    ),
}
