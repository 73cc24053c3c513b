"""ONNX models of constants, ranges, random numbers and shapes."""

from __future__ import annotations

from layerscope.graph.attributes import DeclaredOutputs
from tests.brute.engine import Model, Writer, plain


def constant(m: Model) -> tuple[str, ...]:
    a: DeclaredOutputs = m.attributes
    made = []
    for shape, dtype in zip(a.shapes, a.dtypes, strict=True):
        value = m.cast(m.number(1.0 if dtype == "fp32" else 0.0), dtype)
        made.append(m.node("Expand", value, m.ints(*shape)))
    return tuple(made)


def count(m: Model) -> str:
    ends = [m.node("Squeeze", m.ints(end)) for end in (0, m.attributes.shapes[0][0], 1)]
    return m.node("Range", *ends)


MODELS: dict[str, Writer] = {
    "constant": constant,
    "select": lambda m: tuple(m.node("Identity", m.of(n)) for n in range(len(m.attributes.shapes))),
    "range": count,
    "shape_of": plain("Shape"),
}
