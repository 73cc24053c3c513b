"""Constants, choices and counters. Numbers that a graph does not tell are made up."""

from __future__ import annotations

from layerscope.graph.attributes import DeclaredOutputs
from layerscope.lower.builder import FLOATS, Array, Site, Writer


def constant(s: Site) -> tuple[str, ...]:
    """Ones, or noughts where they may be places."""
    a: DeclaredOutputs = s.attributes
    pairs = zip(a.shapes, a.dtypes, strict=True)
    return tuple(s.draft.full(shape, 1.0 if kind in FLOATS else 0, kind) for shape, kind in pairs)


def select(s: Site) -> tuple[str, ...]:
    """The first of the branches, one input for each output."""
    outputs = s.call.outputs
    if s.call.inputs[: len(outputs)] != outputs:
        raise s.refuse("what it hands out is none of its inputs as it is")
    kinds = [s.draft.shapes.tensors[name].dtype for name in s.node.outputs]
    return tuple(s.add("Identity", s.operand(n, kind)) for n, kind in enumerate(kinds))


def count(s: Site) -> str:
    if len(s.call.y) != 1:
        raise s.refuse(f"a range of shape {s.call.y}, expected one axis")
    return s.add("Identity", s.draft.constant(Array(range(s.call.y[0]), s.call.y, s.dtype)))


def shape_of(s: Site) -> str:
    return s.add("Shape", s.x)


WRITERS: dict[str, Writer] = {
    "constant": constant,
    "select": select,
    "range": count,
    "shape_of": shape_of,
}
