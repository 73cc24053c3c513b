"""ONNX models of ops whose output size depends on data."""

from __future__ import annotations

from layerscope.graph.attributes import Unique
from tests.brute.engine import Model, Writer, plain


def compress(m: Model) -> str:
    told = {"axis": m.attributes.axis} if m.attributes and m.attributes.axis is not None else {}
    return m.node("Compress", m.x, m.cast(m.of(1), "bool"), **told)


def unique(m: Model) -> tuple[str, ...]:
    a = m.attributes or Unique()
    told = {} if a.axis is None else {"axis": a.axis}
    return m.several("Unique", m.x, outputs=a.outputs, **told)


MODELS: dict[str, Writer] = {
    "non_zero": plain("NonZero"),
    "compress": compress,
    "unique": unique,
}
