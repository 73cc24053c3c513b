"""Random values for params and inputs. They depend only on the seed and the name of the tensor."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import TYPE_CHECKING, Any
from zlib import crc32

from layerscope.graph.attributes import Embedding
from layerscope.graph.types import Graph, Param, Shape, elements

if TYPE_CHECKING:
    import numpy
    from onnx import ModelProto

    NumpyArray = numpy.ndarray[Any, Any]

TYPES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "int64": "int64", "int32": "int32",
    "int16": "int16", "int8": "int8", "uint8": "uint8", "bool": "bool",
}  # fmt: skip
ONES = ("running_var", "scale")  # params used as divisors


def array(values: Iterable[float], shape: Shape, dtype: str) -> NumpyArray:
    """An array of elements in row-major order."""
    import numpy

    return numpy.array(list(values), TYPES[dtype]).reshape(shape)


def random_param(name: str, param: Param, seed: int, rows: int) -> NumpyArray:
    """Random values for a param, scaled so that activations stay finite.

    Integers are indices into a table of `rows` rows.
    """
    import numpy

    kind = TYPES[param.dtype]
    if not kind.startswith("float"):
        return (numpy.arange(param.elements) % rows).astype(kind).reshape(param.shape)
    source = numpy.random.default_rng((seed, crc32(name.encode())))
    generated = numpy.float64 if kind == "float64" else numpy.float32
    values: NumpyArray = source.random(param.shape, generated)
    low, high = spread(param)
    values *= high - low
    values += low
    return values.astype(kind, copy=False)


def spread(param: Param) -> tuple[float, float]:
    """Least and greatest random value of a param."""
    if param.name in ONES or param.role == "scale":
        return 0.5, 1.25
    if param.role in ("weight", "embedding") and len(param.shape) > 1:
        bound = sqrt(3 / max(elements(param.shape[1:]), 1))  # a variance of 1 / inputs
        return -bound, bound
    return -0.1, 0.1


def zero(param: Param) -> float:
    """The value of a param among zero weights: 1 for a divisor."""
    return 1.0 if param.name in ONES else 0.0


def samples(model: ModelProto, graph: Graph, seed: int = 0) -> dict[str, NumpyArray]:
    """Random inputs for a lowered model; indices stay within their tables."""
    import numpy
    from onnx import helper

    source = numpy.random.default_rng(seed)
    inputs = {}
    for each in model.graph.input:
        shape = tuple(dim.dim_value for dim in each.type.tensor_type.shape.dim)
        kind = numpy.dtype(helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type))
        if kind.kind == "f":
            inputs[each.name] = source.uniform(-1, 1, shape).astype(kind)
        else:
            inputs[each.name] = source.integers(0, rows_of(graph, each.name), shape).astype(kind)
    return inputs


def rows_of(graph: Graph, tensor: str) -> int:
    """Rows of the smallest embedding table that a tensor indexes; 1 if it indexes none."""
    rows = (
        node.attributes.rows
        for node in graph.nodes
        if tensor in node.inputs and isinstance(node.attributes, Embedding)
    )
    return min(rows, default=1)
