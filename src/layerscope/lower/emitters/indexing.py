"""Gather, scatter, embeddings and other ops by index."""

from __future__ import annotations

from layerscope.errors import CannotLower
from layerscope.graph.attributes import (
    Embedding,
    Gather,
    GatherND,
    OneHot,
    Scatter,
    Table,
)
from layerscope.lower.builder import Emitter, NodeEmitter, OnnxConstant

INDEX_TYPES = ("int64", "int32")
SHIFT = 2  # of a roll along every axis but the first; a graph does not contain the shifts


def _indices(node: NodeEmitter, n: int) -> str:
    return node.inputs[n] if node.dtype_of(n) in INDEX_TYPES else node.cast(node.inputs[n], "int64")


def gather(node: NodeEmitter) -> str:
    a: Gather = node.attributes or Gather()
    op = "GatherElements" if a.elements else "Gather"
    return node.add(op, node.x, _indices(node, 1), axis=a.axis)


def scatter(node: NodeEmitter) -> str:
    a: Scatter = node.attributes or Scatter()
    names = node.x, _indices(node, 1), node.operand(2, node.dtype)
    return node.add("ScatterElements", *names, axis=a.axis, reduction=_reduction(node, a))


def _reduction(node: NodeEmitter, a: Scatter) -> str:
    if a.reduce == "mean":
        raise CannotLower(f"{node.name}: ONNX has no scatter with the reduction mean")
    return a.reduce or ("add" if a.add else "none")


def gather_nd(node: NodeEmitter) -> str:
    a: GatherND = node.attributes or GatherND()
    return node.add("GatherND", node.x, node.cast(node.inputs[1], "int64"), batch_dims=a.batch)


def scatter_nd(node: NodeEmitter) -> str:
    a: Scatter = node.attributes or Scatter()
    names = node.x, node.cast(node.inputs[1], "int64"), node.operand(2, node.dtype)
    return node.add("ScatterND", *names, reduction="add" if a.add else "none")


def one_hot(node: NodeEmitter) -> str:
    a: OneHot = node.attributes
    ends = node.numbers((0, 1), (2,))
    return node.add("OneHot", _indices(node, 0), node.ints(a.depth), ends, axis=a.axis)


def where(node: NodeEmitter) -> str:
    return node.add(
        "Where", *(node.operand(n, kind) for n, kind in enumerate(("bool", *[node.dtype] * 2)))
    )


def embedding(node: NodeEmitter) -> str:
    """Computed indices, such as relative positions, are taken modulo the rows of the table."""
    a: Embedding = node.attributes
    indices = _indices(node, 0)
    if node.builder.producers.get(node.x, "positions") != "positions":
        kind = node.dtype_of(0) if node.dtype_of(0) in INDEX_TYPES else "int64"
        indices = node.add("Mod", indices, node.number(a.rows, kind))
    return node.add("Gather", node.param("weight"), indices, axis=0)


def table(node: NodeEmitter) -> str:
    a: Table = node.attributes
    if not a.batched:
        return node.add("Identity", node.param("weight"))
    return node.add("Expand", node.param("weight"), node.ints(node.shape[0], *a.shape[1:]))


def positions(node: NodeEmitter) -> str:
    length = node.shape[1]
    return node.add("Constant", value=OnnxConstant(range(length), (1, length), "int64"))


def roll(node: NodeEmitter) -> str:
    """Move the last elements of each axis to its front."""
    y = node.x
    for axis, size in list(enumerate(node.shape))[1:]:
        if SHIFT % size == 0:
            continue
        cut = node.ints(size - SHIFT % size)
        end = node.add("Slice", y, cut, node.ints(size), node.ints(axis))
        rest = node.add("Slice", y, node.ints(0), cut, node.ints(axis))
        y = node.add("Concat", end, rest, axis=axis)
    return y


EMITTERS: dict[str, Emitter] = {
    "gather": gather,
    "scatter": scatter,
    "gather_nd": gather_nd,
    "scatter_nd": scatter_nd,
    "one_hot": one_hot,
    "where": where,
    "embedding": embedding,
    "table": table,
    "positions": positions,
    "roll": roll,
}
