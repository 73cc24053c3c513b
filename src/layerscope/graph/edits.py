"""Graphs made from graphs: the original is never changed."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from layerscope.errors import UnknownName, UsageError
from layerscope.graph.types import DTYPE_BITS, Graph, Shape, Tensor

FLOATS = ("fp64", "fp32", "fp16", "bf16")


def bind(
    graph: Graph,
    shapes: Mapping[str, Shape] | None = None,
    batch: int | None = None,
    dtype: str | None = None,
) -> Graph:
    """The same network on other input shapes, batch or number type.

    A shape of the declared rank has the batch in it, one of a rank less has not; `batch` wins.
    """
    if dtype is not None and dtype not in DTYPE_BITS:
        raise UnknownName("dtype", dtype, DTYPE_BITS)
    if batch is not None and batch < 1:
        raise UsageError(f"batch {batch}, expected at least 1")
    given = dict(shapes or {})
    names = [tensor.name for tensor in graph.inputs]
    if "" in given:  # a shape without a name is that of the first input
        given[names[0]] = given.pop("")
    for name in given:
        if name not in names:
            raise UnknownName("input", name, names, f"; {graph.name} has {', '.join(names)}")
    inputs = tuple(_bound(tensor, given.get(tensor.name), batch, dtype) for tensor in graph.inputs)
    made = dtype or graph.dtype
    if inputs == graph.inputs and made == graph.dtype:
        return graph
    return replace(graph, inputs=inputs, dtype=made)


def _bound(tensor: Tensor, shape: Shape | None, batch: int | None, dtype: str | None) -> Tensor:
    declared = tensor.shape
    if shape is not None:
        if min(shape, default=0) < 1:
            told = "x".join(map(str, shape))
            raise UsageError(f"input {tensor.name}: {told}, expected every size to be at least 1")
        if declared is not None and len(shape) == len(declared) - 1:
            shape = (declared[0], *shape)
        elif declared is not None and len(shape) != len(declared):
            told = "x".join(map(str, declared))
            raise UsageError(
                f"input {tensor.name}: {len(shape)} sizes, expected {len(declared)} as in {told}, "
                f"or {len(declared) - 1} without the batch"
            )
        declared = shape
    if batch is not None and declared:
        declared = (batch, *declared[1:])
    floating = dtype is not None and tensor.dtype in FLOATS
    return Tensor(tensor.name, declared, dtype if floating and dtype else tensor.dtype)
