"""Choosing, placing and repeating elements by index."""

from __future__ import annotations

from layerscope.errors import CannotLower
from layerscope.graph.attributes import (
    Embedding,
    Expand,
    Gather,
    GatherND,
    OneHot,
    Scatter,
    Table,
    TopK,
)
from layerscope.lower.builder import Array, Site, Writer

WHOLE = ("int64", "int32")
SHIFT = 2  # by how much a roll moves every axis but the first: the graph does not tell


def _indices(s: Site, n: int) -> str:
    return s.inputs[n] if s.dtype_of(n) in WHOLE else s.cast(s.inputs[n], "int64")


def gather(s: Site) -> str:
    a: Gather = s.attributes or Gather()
    op = "GatherElements" if a.elements else "Gather"
    return s.add(op, s.x, _indices(s, 1), axis=a.axis)


def scatter(s: Site) -> str:
    a: Scatter = s.attributes or Scatter()
    names = s.x, _indices(s, 1), s.operand(2, s.dtype)
    return s.add("ScatterElements", *names, axis=a.axis, reduction=_reduction(s, a))


def _reduction(s: Site, a: Scatter) -> str:
    if a.reduce == "mean":
        raise CannotLower(f"{s.node.name}: ONNX scatters no means")
    return a.reduce or ("add" if a.add else "none")


def gather_nd(s: Site) -> str:
    a: GatherND = s.attributes or GatherND()
    return s.add("GatherND", s.x, s.cast(s.inputs[1], "int64"), batch_dims=a.batch)


def scatter_nd(s: Site) -> str:
    a: Scatter = s.attributes or Scatter()
    names = s.x, s.cast(s.inputs[1], "int64"), s.operand(2, s.dtype)
    return s.add("ScatterND", *names, reduction="add" if a.add else "none")


def one_hot(s: Site) -> str:
    a: OneHot = s.attributes
    ends = s.numbers((0, 1), (2,))
    return s.add("OneHot", _indices(s, 0), s.ints(a.depth), ends, axis=a.axis)


def expand(s: Site) -> str:
    """ONNX keeps an axis that is asked to be 1."""
    a: Expand = s.attributes
    return s.add("Expand", s.x, s.ints(*(1 if size in (0, -1) else size for size in a.shape)))


def where(s: Site) -> str:
    return s.add("Where", *(s.operand(n, kind) for n, kind in enumerate(("bool", *[s.dtype] * 2))))


def top_k(s: Site) -> tuple[str, ...]:
    a: TopK = s.attributes
    return s.several("TopK", s.x, s.ints(a.k), outputs=2, axis=a.axis)


def embedding(s: Site) -> str:
    """Indices that were worked out, such as distances, are brought within the table."""
    a: Embedding = s.attributes
    indices = _indices(s, 0)
    if s.draft.makers.get(s.x, "positions") != "positions":
        kind = s.dtype_of(0) if s.dtype_of(0) in WHOLE else "int64"
        indices = s.add("Mod", indices, s.number(a.rows, kind))
    return s.add("Gather", s.param("weight"), indices, axis=0)


def table(s: Site) -> str:
    a: Table = s.attributes
    if not a.batched:
        return s.add("Identity", s.param("weight"))
    return s.add("Expand", s.param("weight"), s.ints(s.shape[0], *a.shape[1:]))


def positions(s: Site) -> str:
    length = s.shape[1]
    return s.add("Constant", value=Array(range(length), (1, length), "int64"))


def roll(s: Site) -> str:
    """What falls off the end of an axis is put in front of it."""
    y = s.x
    for axis, size in list(enumerate(s.shape))[1:]:
        if SHIFT % size == 0:
            continue
        cut = s.ints(size - SHIFT % size)
        end = s.add("Slice", y, cut, s.ints(size), s.ints(axis))
        rest = s.add("Slice", y, s.ints(0), cut, s.ints(axis))
        y = s.add("Concat", end, rest, axis=axis)
    return y


WRITERS: dict[str, Writer] = {
    "gather": gather,
    "scatter": scatter,
    "gather_nd": gather_nd,
    "scatter_nd": scatter_nd,
    "one_hot": one_hot,
    "expand": expand,
    "where": where,
    "top_k": top_k,
    "embedding": embedding,
    "table": table,
    "positions": positions,
    "roll": roll,
}
