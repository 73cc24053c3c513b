"""Element-wise functions of several tensors, broadcast against each other."""

from __future__ import annotations

from layerscope.graph.types import Shape
from layerscope.ops.rule import FREE, Call, Ops, OpsRule, Rule, broadcast, passes
from layerscope.ops.saved import every_input, nothing

KINDS = {
    "add": Ops(add=1),
    "sub": Ops(add=1),
    "mul": Ops(mul=1),
    "div": Ops(div=1),
    "pow": Ops(exp=1),
    "max": Ops(comp=1),
    "min": Ops(comp=1),
    "compare": Ops(comp=1),
}
ANY_NUMBER = ("add", "mul", "max", "min")


def _shape(call: Call) -> tuple[Shape, ...]:
    return (broadcast(call.inputs),)


def _ops(unit: Ops) -> OpsRule:
    """N inputs take n − 1 operations per output element; a lone input meets a constant."""
    return lambda call: unit * (call.out_elements * max(len(call.inputs) - 1, 1))


def _backward(op: str) -> tuple[int, int]:
    """Operations per input and output element: mul, div."""
    return {"mul": (1, 0), "div": (1, 1), "pow": (2, 0)}.get(op, (0, 0))


def _rule(op: str, unit: Ops) -> Rule:
    mul, div = _backward(op)
    backward = (
        passes
        if op in ("add", "sub", "compare")
        else lambda call: (
            Ops(mul=mul or 1, div=div) * (call.out_elements * len(call.inputs)),
            FREE,
        )
    )
    return Rule(
        family="elementwise",
        shape=_shape,
        ops=_ops(unit),
        backward=backward,
        saves=nothing if backward is passes else every_input,
        arity=(1, None if op in ANY_NUMBER else 2),
        in_place=op != "compare",
        makes=("bool",) if op == "compare" else (),
    )


RULES = {op: _rule(op, unit) for op, unit in KINDS.items()}
