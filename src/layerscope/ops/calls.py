"""Shape inference and parameters of one call of an op, cached for the whole process.

Both tables are shared by all graphs:

- `CALLS` holds one `Call` for each op, attributes and input shapes met so far.
- `PARAMS` holds the parameters of a call in one dtype. Calls compare by identity, so the call
  itself is the key, and the table keeps it alive.

Each grows to at most `MOST` entries and is then cleared as a whole. Threads may use both at the
same time: every access is a single dict operation, and two threads that compute the same entry
compute equal values. `CALLS.setdefault` gives both the same call.
"""

from __future__ import annotations

from msgspec import Struct

from layerscope.errors import ShapeError
from layerscope.graph.types import Param, Shape
from layerscope.ops import SPECS, Call
from layerscope.ops.spec import within_limits

Attributes = Struct | None

CALLS: dict[tuple[str, Attributes, tuple[Shape, ...]], Call] = {}
PARAMS: dict[tuple[Call, str], tuple[Param, ...]] = {}
MOST = 50_000


def infer_call(op: str, attributes: Attributes, shapes: tuple[Shape, ...]) -> Call:
    """The call with its output shapes; raises ShapeError for shapes that the op does not take."""
    key = (op, attributes, shapes)
    try:
        found = CALLS.get(key)
    except TypeError:  # unhashable attributes
        return _infer(op, attributes, shapes)
    if found is None:
        if len(CALLS) >= MOST:
            CALLS.clear()
        found = CALLS.setdefault(key, _infer(op, attributes, shapes))
    return found


def _infer(op: str, attributes: Attributes, shapes: tuple[Shape, ...]) -> Call:
    spec = SPECS[op]
    least, most = spec.arity
    if len(shapes) < least or (most is not None and len(shapes) > most):
        expected = f"{least}" if least == most else f"{least} to {most or 'any number'}"
        raise ShapeError(f"{op} of {len(shapes)} inputs, expected {expected}")
    return Call(attributes, shapes, within_limits(spec.shape(Call(attributes, shapes))))


def params_of(op: str, call: Call, dtype: str = "") -> tuple[Param, ...]:
    """Parameters of a call; `dtype` is the dtype of those for which the op prescribes none."""
    found = PARAMS.get((call, dtype))
    if found is None:
        if len(PARAMS) >= MOST:
            PARAMS.clear()
        found = SPECS[op].params(call)
        if dtype:
            found = tuple(
                [p if p.dtype else Param(p.name, p.shape, p.role, dtype, p.storage) for p in found]
            )
        PARAMS[call, dtype] = found
    return found
