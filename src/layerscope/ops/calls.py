"""What rules say of an op on some shapes: the same in every network, so it is worked out once."""

from __future__ import annotations

from typing import Any

from layerscope.errors import ShapeError
from layerscope.graph.types import Param, Shape
from layerscope.ops import SPECS, Call
from layerscope.ops.spec import within_limits

CALLS: dict[Any, Call] = {}
# The call is kept, so that no other comes to have its identity.
PARAMS: dict[tuple[int, str], tuple[Call, tuple[Param, ...]]] = {}
MOST = 50_000  # more are forgotten all at once


def infer_call(op: str, attributes: Any, shapes: tuple[Shape, ...]) -> Call:
    """The call with the shapes it makes; raises where the rule does, or for too many inputs."""
    key = (op, attributes, shapes)
    try:
        found = CALLS.get(key)
    except TypeError:  # attributes that cannot be looked up
        return _new(op, attributes, shapes)
    if found is None:
        if len(CALLS) >= MOST:
            CALLS.clear()
        found = CALLS.setdefault(key, _new(op, attributes, shapes))
    return found


def _new(op: str, attributes: Any, shapes: tuple[Shape, ...]) -> Call:
    rule = SPECS[op]
    least, most = rule.arity
    if len(shapes) < least or (most is not None and len(shapes) > most):
        expected = f"{least}" if least == most else f"{least} to {most or 'any number'}"
        raise ShapeError(f"{op} of {len(shapes)} inputs, expected {expected}")
    return Call(attributes, shapes, within_limits(rule.shape(Call(attributes, shapes))))


def params_of(op: str, call: Call, dtype: str = "") -> tuple[Param, ...]:
    """Arrays that the rule tells of, in the number type given where it leaves that open."""
    found = PARAMS.get((id(call), dtype))
    if found is None:
        if len(PARAMS) >= MOST:
            PARAMS.clear()
        params = SPECS[op].params(call)
        if dtype:
            params = tuple(
                [p if p.dtype else Param(p.name, p.shape, p.role, dtype, p.storage) for p in params]
            )
        found = PARAMS[id(call), dtype] = (call, params)
    return found[1]
