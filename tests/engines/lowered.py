"""Lowered models run by onnxruntime, every tensor of theirs an output."""

from __future__ import annotations

from typing import Any

import numpy as np  # noqa: TID251  (this file and test_lower are about it)
import onnx  # noqa: TID251
import onnxruntime

from layerscope import Graph, Node, Tensor
from layerscope.analysis.costs import Cost, costs
from layerscope.analysis.shapes import Shapes, infer
from layerscope.graph.types import Shape
from layerscope.lower.onnx import Weights, lower
from layerscope.lower.weights import samples
from tests.brute.attention import cache, cache_shape
from tests.brute.case import Case

FATAL = 4
Arrays = dict[str, "np.ndarray[Any, Any]"]


def accounted(graph: Graph) -> tuple[Graph, Shapes, dict[str, Cost]]:
    shapes = infer(graph)
    return graph, shapes, costs(graph, shapes)


def lowered(graph: Graph, weights: Weights = "random") -> Any:
    return lower(*accounted(graph), weights=weights)


def made(graph: Graph) -> list[str]:
    return [name for node in graph.nodes for name in node.outputs]


def run(model: Any, graph: Graph, given: Arrays | None = None, *, full: bool = True) -> Arrays:
    """What every tensor of the graph is when the model runs, optimised or not."""
    names = made(graph)
    every = onnx.ModelProto()
    every.CopyFrom(model)
    del every.graph.output[:]
    every.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = FATAL
    if not full:
        level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(
        every.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    fed = samples(model, graph) if given is None else given
    return dict(zip(names, session.run(None, fed), strict=True))


def inferred(model: Any) -> dict[str, Shape]:
    """Shapes that onnx itself infers; it raises where they do not agree."""
    found = onnx.shape_inference.infer_shapes(model, True, True, True)
    return {
        value.name: tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        for value in found.graph.value_info
    }


def graph_of(case: Case) -> Graph:
    """A case as a network of one node."""
    inputs = tuple(
        Tensor(f"x{n}", shape, "int64" if n in case.whole else "fp32")
        for n, shape in enumerate(case.inputs)
    )
    outputs = tuple(f"y{n}" for n in range(len(case.call.outputs)))
    node = Node("node", case.op, tuple(x.name for x in inputs), outputs, case.attributes)
    return Graph("case", inputs or (Tensor("unread", (1,)),), (node,), outputs)


def run_case(case: Case) -> list[tuple[Shape, list[float]]]:
    """Shapes and numbers of a case's outputs, on its own inputs and arrays."""
    graph, numbers = graph_of(case), case.run()
    model = lowered(graph)
    onnx.checker.check_model(model, full_check=True)
    for tensor in model.graph.initializer:
        array = numbers.params[tensor.name.removeprefix("node.")]
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        values = np.array(array.values(), kind).reshape(array.shape)
        tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    given: Arrays = {}
    if not numbers.inputs:
        given["unread"] = np.zeros((1,), np.float32)
    for x, array in zip(graph.inputs, numbers.inputs, strict=not given):
        whole = x.dtype == "int64"
        given[x.name] = np.array(array.values(), np.int64 if whole else np.float32).reshape(x.shape)
    for n, which in enumerate("kv", 1):
        if getattr(case.attributes, "past", 0):
            shape = cache_shape(case.attributes, case.inputs[n])
            before = cache(case.attributes, case.inputs[n], which)
            given[f"node/past_{which}"] = np.array(before, np.float32).reshape(shape)
    results = run(model, graph, given).values()
    return [(y.shape, y.astype(np.float64).ravel().tolist()) for y in results]
