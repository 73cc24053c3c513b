"""ONNX models of top-k."""

from __future__ import annotations

from layerscope.graph.attributes import TopK
from tests.brute.engine import Model, Writer


def top_k(m: Model) -> tuple[str, ...]:
    a: TopK = m.attributes
    return m.several("TopK", m.x, m.ints(a.k), outputs=2, axis=a.axis)


MODELS: dict[str, Writer] = {"top_k": top_k}
