"""Numbers for arrays and inputs: the same for the same seed and name, whatever else there is."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import TYPE_CHECKING, Any
from zlib import crc32

from layerscope.graph.attributes import Embedding
from layerscope.graph.types import Graph, Param, Shape, elements

if TYPE_CHECKING:
    import numpy

TYPES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "int64": "int64", "int32": "int32",
    "int16": "int16", "int8": "int8", "uint8": "uint8", "bool": "bool",
}  # fmt: skip
ONES = ("running_var", "scale")  # by these is divided


def array(values: Iterable[float], shape: Shape, dtype: str) -> numpy.ndarray[Any, Any]:
    """Numbers row by row as an array."""
    import numpy

    return numpy.array(list(values), TYPES[dtype]).reshape(shape)


def drawn(name: str, param: Param, seed: int, rows: int) -> numpy.ndarray[Any, Any]:
    """Random numbers for a stored array, of a size that keeps what flows through it finite.

    Whole numbers are indices into a table of so many rows.
    """
    import numpy

    kind = TYPES[param.dtype]
    if not kind.startswith("float"):
        return (numpy.arange(param.elements) % rows).astype(kind).reshape(param.shape)
    source = numpy.random.default_rng((seed, crc32(name.encode())))
    narrow: Any = numpy.float64 if kind == "float64" else numpy.float32
    values = source.random(param.shape, narrow)
    low, high = spread(param)
    values *= high - low
    values += low
    return values.astype(kind, copy=False)


def spread(param: Param) -> tuple[float, float]:
    """Between which numbers the elements of an array are drawn."""
    if param.name in ONES or param.role == "scale":
        return 0.5, 1.25
    if param.role in ("weight", "embedding") and len(param.shape) > 1:
        bound = sqrt(3 / max(elements(param.shape[1:]), 1))  # a variance of 1 / inputs
        return -bound, bound
    return -0.1, 0.1


def zero(param: Param) -> float:
    """The value of an array of zeros: 1 where it is divided by."""
    return 1.0 if param.name in ONES else 0.0


def samples(model: Any, graph: Graph, seed: int = 0) -> dict[str, numpy.ndarray[Any, Any]]:
    """Something to feed to a lowered model: random numbers, and of indices none past its table."""
    import numpy
    from onnx import helper

    source = numpy.random.default_rng(seed)
    made = {}
    for each in model.graph.input:
        shape = tuple(dim.dim_value for dim in each.type.tensor_type.shape.dim)
        kind = numpy.dtype(helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type))
        if kind.kind == "f":
            made[each.name] = source.uniform(-1, 1, shape).astype(kind)
        else:
            made[each.name] = source.integers(0, rows_of(graph, each.name), shape).astype(kind)
    return made


def rows_of(graph: Graph, tensor: str) -> int:
    """Rows of the smallest table that a tensor of indices is looked up in; 1 if of none."""
    told = (
        node.attributes.rows
        for node in graph.nodes
        if tensor in node.inputs and isinstance(node.attributes, Embedding)
    )
    return min(told, default=1)
