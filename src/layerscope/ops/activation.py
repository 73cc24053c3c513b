"""Element-wise functions of one tensor, by what each costs per element."""

from __future__ import annotations

from layerscope.graph.attributes import PReLU
from layerscope.graph.types import Param, Shape, elements
from layerscope.ops.rule import Call, Ops, Rule, each, need_rank, param, same
from layerscope.ops.saved import FIRST, NOTHING, RESULT, Saved, SavesRule

COSTS = {
    "relu": Ops(comp=1),
    "relu6": Ops(comp=2),
    "clip": Ops(comp=2),
    "abs": Ops(comp=1),
    "threshold": Ops(comp=1),
    "leaky_relu": Ops(comp=1, mul=1),
    "elu": Ops(comp=1, exp=1, add=1, mul=1),
    "selu": Ops(comp=1, exp=1, add=1, mul=2),
    "sigmoid": Ops(exp=1, add=1, div=1),
    "tanh": Ops(exp=1, add=2, div=1),
    "silu": Ops(exp=1, add=1, div=1, mul=1),
    "hard_sigmoid": Ops(add=1, mul=1, comp=2),
    "hard_swish": Ops(add=1, mul=2, comp=2),
    "gelu": Ops(exp=1, mul=3, add=1),
    "gelu_tanh": Ops(exp=1, mul=6, add=4, div=1),
    "softplus": Ops(exp=2, add=1),
    "exp": Ops(exp=1),
    "log": Ops(exp=1),
    "sqrt": Ops(exp=1),
    "neg": Ops(mul=1),
}


# Gradients told by the output alone, so that it is the output that is kept.
BY_RESULT = ("relu", "sigmoid", "tanh", "exp", "sqrt")
# These are too when they work in place; others must then keep a copy of their input.
BY_RESULT_IN_PLACE = (*BY_RESULT, "leaky_relu", "elu", "selu")


def _saves(op: str) -> SavesRule:
    def saves(call: Call) -> Saved:
        if op == "neg":
            return NOTHING
        if op in BY_RESULT:
            return RESULT
        if not getattr(call.attributes, "in_place", False):
            return FIRST
        return RESULT if op in BY_RESULT_IN_PLACE else Saved(extra=((elements(call.x), ""),))

    return saves


def _prelu_shape(call: Call) -> tuple[Shape, ...]:
    need_rank(call, 1 if call.attributes and call.attributes.shared else 2, "PReLU")
    return same(call)


def _prelu_params(call: Call) -> tuple[Param, ...]:
    a: PReLU = call.attributes or PReLU()
    return (param("weight", (1,) if a.shared else (call.x[1],), "slope"),)


RULES = {
    op: Rule(
        family="activation",
        shape=same,
        ops=each(
            mac=cost.mac, add=cost.add, mul=cost.mul, comp=cost.comp, div=cost.div, exp=cost.exp
        ),
        saves=_saves(op),
        in_place=True,
    )
    for op, cost in COSTS.items()
} | {
    "prelu": Rule(
        family="activation",
        shape=_prelu_shape,
        ops=each(comp=1, mul=1),
        params=_prelu_params,
        backward=lambda call: (Ops(mul=call.out_elements), Ops(mul=1, add=1) * call.out_elements),
        in_place=True,
    ),
}
