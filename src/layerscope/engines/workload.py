"""What an engine is given to measure: the model of a report, and random inputs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from layerscope.engines.onnx_nodes import EngineGraph, engine_graph
from layerscope.errors import EngineError
from layerscope.extras import need
from layerscope.formats.sources import file_inside
from layerscope.report import Report

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

    from layerscope.engines import Arrays

# Types of inputs as onnxruntime names them -> dtypes of NumPy.
NUMPY_DTYPES = {
    "tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64",
    "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(int16)": "int16",
    "tensor(int8)": "int8", "tensor(uint8)": "uint8", "tensor(bool)": "bool",
}  # fmt: skip
TENSOR_TYPES = {dtype: tensor_type for tensor_type, dtype in NUMPY_DTYPES.items()}
WARM_UPS = 3
USUAL_RUNS = 10  # with fewer, quartiles and the overhead of profiling are unreliable
INLINE_SHARE = 0.95  # of the bytes that fit into one file, for weights; the rest for the graph

Fusion = Literal["on", "off"]


class MeasureOptions(Struct, frozen=True):
    """How an engine measures a workload."""

    threads: int
    runs: int = USUAL_RUNS
    fusion: Fusion = "on"
    power_w: float | None = None
    memory: bool = True
    paired: bool = True  # an unprofiled run after each profiled one


class Workload(Struct, frozen=True):
    """A report and its ONNX model, as bytes or as a path; `owners` are the layers of its nodes."""

    report: Report
    model: bytes | str
    graph: EngineGraph
    owners: tuple[str, ...]


class InputInfo(Protocol):
    """Name, shape and type of an input, as onnxruntime's sessions describe it."""

    @property
    def name(self) -> str:
        """Name of the input."""

    @property
    def shape(self) -> Sequence[int | str | None]:
        """Sizes; a dynamic size is a name or None."""

    @property
    def type(self) -> str:
        """One of NUMPY_DTYPES, or a type that cannot be measured."""


class ModelInput(Struct, frozen=True):
    """An input of an engine other than onnxruntime, in onnxruntime's words."""

    name: str
    shape: tuple[int, ...]
    type: str


def prepare_workload(report: Report, folder: str, path: str | None = None) -> Workload:
    """Take the ONNX file that a report was read from, else lower its graph to ONNX."""
    from layerscope.engines.mapping import owners_of

    model: bytes | str
    if path is not None:
        model, proto = _with_unique_names(path, folder)
    else:
        model, proto = _lowered(report, folder)
    graph = engine_graph(proto)
    producers = {name: node.name for node in report.graph.nodes for name in node.outputs}
    owners = owners_of(graph, producers, [node.name for node in report.graph.nodes])
    return Workload(report, model, graph, tuple(owners))


def _lowered(report: Report, folder: str) -> tuple[bytes | str, ModelProto]:
    need("an ONNX model", "onnx", "onnx", "numpy")
    import onnx

    from layerscope.lower.onnx import INLINE_BYTES, lower, save

    if report.totals.param_bytes > INLINE_BYTES * INLINE_SHARE:
        path = os.path.join(folder, "model.onnx")
        save(path, report.graph, report.shapes, report.costs)
        return path, onnx.load(path, load_external_data=False)
    proto = lower(report.graph, report.shapes, report.costs)
    return proto.SerializeToString(), proto


def _with_unique_names(path: str, folder: str) -> tuple[str, ModelProto]:
    """Load a file; if nodes lack names of their own, write a copy of it that has them.

    Engines report times by the names of nodes.
    """
    import onnx

    try:
        proto = onnx.load(path, load_external_data=False)
    except Exception as error:
        raise EngineError(f"{path}: onnx cannot load it: {first_line(error)}") from None
    names = [node.name for node in proto.graph.node]
    if all(names) and len(set(names)) == len(names):
        return path, proto
    for n, node in enumerate(proto.graph.node):
        if not node.name or names.count(node.name) > 1:
            node.name = f"{node.name or node.op_type}#{n}"
    _link_external_data(path, folder, proto.graph)
    renamed = os.path.join(folder, "named.onnx")
    onnx.save(proto, renamed)
    return renamed, proto


def _link_external_data(path: str, folder: str, graph: GraphProto) -> None:
    """Link the files of external weights into the folder that the copy is written to."""
    beside = os.path.join(os.path.dirname(os.path.abspath(path)), "")
    for tensor in graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                file_inside(path, entry.value)
                link = os.path.join(folder, entry.value)
                if not os.path.exists(link):
                    os.makedirs(os.path.dirname(link), exist_ok=True)
                    os.symlink(beside + entry.value, link)


def random_inputs(inputs: Iterable[InputInfo], report: Report, seed: int = 0) -> Arrays:
    """Random values for inputs; indices stay within the tables that they select from."""
    import numpy

    from layerscope.lower.weights import rows_of

    source = numpy.random.default_rng(seed)
    shapes = {tensor.name: tensor.shape for tensor in report.inputs}
    arrays: Arrays = {}
    for each in inputs:
        shape = shapes.get(each.name) or tuple(
            size if isinstance(size, int) else 1 for size in each.shape
        )
        if each.type not in NUMPY_DTYPES:
            raise EngineError(f"input {each.name} is a {each.type}, which cannot be measured")
        dtype = numpy.dtype(NUMPY_DTYPES[each.type])
        if dtype.kind == "f":
            arrays[each.name] = source.uniform(-1, 1, shape).astype(dtype)
        else:
            rows = rows_of(report.graph, each.name)
            arrays[each.name] = source.integers(0, max(rows, 1), shape).astype(dtype)
    return arrays


def first_line(error: BaseException) -> str:
    """The first line of an engine's error message, shortened."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300]
