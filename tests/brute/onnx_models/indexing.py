"""ONNX models of gather, scatter, embeddings and other ops by index."""

from __future__ import annotations

from layerscope.graph.attributes import Gather, GatherND, OneHot, Scatter, Table
from tests.brute.engine import Model, Writer
from tests.brute.indexing import SHIFT


def gather(m: Model) -> str:
    a: Gather = m.attributes or Gather()
    return m.node("GatherElements" if a.elements else "Gather", m.x, m.of(1), axis=a.axis)


def scatter(m: Model) -> str:
    a: Scatter = m.attributes or Scatter()
    told = {"axis": a.axis, "reduction": "add" if a.add else "none"}
    return m.node("ScatterElements", m.x, m.of(1), m.of(2), **told)


def where(m: Model) -> str:
    return m.node("Where", m.cast(m.x, "bool"), m.of(1), m.of(2))


def table(m: Model) -> str:
    a: Table = m.attributes
    if not a.batched:
        return m.node("Identity", "weight")
    return m.node("Expand", "weight", m.ints(m.shape[0], *a.shape[1:]))


def positions(m: Model) -> str:
    length = m.node("Squeeze", m.node("Shape", m.x, start=1, end=2))
    one = m.node("Squeeze", m.ints(1))
    nought = m.node("Squeeze", m.ints(0))
    return m.node("Unsqueeze", m.node("Range", nought, length, one), m.ints(0))


def roll(m: Model) -> str:
    """What falls off the end of an axis is put in front of it."""
    y = m.x
    for axis, size in list(enumerate(m.shape))[1:]:
        cut = size - SHIFT % size
        end = m.node("Slice", y, m.ints(cut), m.ints(size), m.ints(axis))
        rest = m.node("Slice", y, m.ints(0), m.ints(cut), m.ints(axis))
        y = m.node("Concat", end, rest, axis=axis)
    return y


def gather_nd(m: Model) -> str:
    a: GatherND = m.attributes or GatherND()
    return m.node("GatherND", m.x, m.of(1), batch_dims=a.batch)


def scatter_nd(m: Model) -> str:
    a: Scatter = m.attributes or Scatter()
    return m.node("ScatterND", m.x, m.of(1), m.of(2), reduction="add" if a.add else "none")


def one_hot(m: Model) -> str:
    a: OneHot = m.attributes
    return m.node("OneHot", m.x, m.ints(a.depth), m.numbers([0.0, 1.0]), axis=a.axis)


MODELS: dict[str, Writer] = {
    "gather": gather,
    "scatter": scatter,
    "where": where,
    "embedding": lambda m: m.node("Gather", "weight", m.x, axis=0),
    "table": table,
    "positions": positions,
    "roll": roll,
    "gather_nd": gather_nd,
    "scatter_nd": scatter_nd,
    "one_hot": one_hot,
}
