"""ONNX models of top-k and cumulative sums."""

from __future__ import annotations

from layerscope.graph.attributes import CumSum, TopK
from tests.brute.engine import Model, Writer


def top_k(m: Model) -> tuple[str, ...]:
    a: TopK = m.attributes
    return m.several("TopK", m.x, m.ints(a.k), outputs=2, axis=a.axis)


def cum_prod(m: Model) -> str:
    """Each element against all along its axis, those after it as ones, multiplied."""
    a: CumSum = m.attributes
    axis = a.axis % len(m.shape)
    size, behind = m.shape[axis], len(m.shape) - axis - 1
    upto = [float(j <= i) for i in range(size) for j in range(size)]
    mask = m.cast(m.tensor(upto, (size, size, *[1] * behind)), "bool")
    rows = m.node("Unsqueeze", m.x, m.ints(axis))
    chosen = m.node("Where", mask, rows, m.number(1.0))
    return m.node("ReduceProd", chosen, m.ints(axis + 1), keepdims=0)


MODELS: dict[str, Writer] = {
    "top_k": top_k,
    "cum_sum": lambda m: m.node("CumSum", m.x, m.ints(m.attributes.axis)),
    "cum_prod": cum_prod,
}
