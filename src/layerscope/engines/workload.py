"""What is measured: a report, the model an engine runs for it, and something to feed to it."""

from __future__ import annotations

import os
from typing import Any, Literal

from msgspec import Struct

from layerscope.engines.onnx_nodes import Program, program_of
from layerscope.errors import EngineError, MissingExtra
from layerscope.formats.inside import inside
from layerscope.report import Report

KINDS = {
    "tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64",
    "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(int16)": "int16",
    "tensor(int8)": "int8", "tensor(uint8)": "uint8", "tensor(bool)": "bool",
}  # fmt: skip
WARM_UPS = 3
LEAST_RUNS = 10


Fusion = Literal["on", "off"]


class Options(Struct, frozen=True):
    """How to measure."""

    threads: int
    runs: int = LEAST_RUNS
    fusion: Fusion = "on"
    power_w: float | None = None
    memory: bool = True
    paired: bool = True  # with an unprofiled run after each profiled one


class Subject(Struct, frozen=True):
    """A model in memory or in a file; `owners` are the layers of the program's operators."""

    report: Report
    model: bytes | str
    program: Program
    owners: tuple[str, ...]


def subject_of(report: Report, folder: str, path: str | None = None) -> Subject:
    """The model of a report: the file it was read from, else the graph lowered to one."""
    from layerscope.engines.mapping import owners_of

    model: bytes | str
    if path is not None:
        model, proto = _named(path, folder)
    else:
        model, proto = _lowered(report, folder)
    program = program_of(proto)
    makers = {name: node.name for node in report.graph.nodes for name in node.outputs}
    owners = owners_of(program, makers, [node.name for node in report.graph.nodes])
    return Subject(report, model, program, tuple(owners))


def _lowered(report: Report, folder: str) -> tuple[bytes | str, Any]:
    try:
        import onnx
    except ImportError:
        raise MissingExtra("writing the model", "onnx") from None
    from layerscope.lower.onnx import INLINE_BYTES, lower, save

    if report.totals.param_bytes > INLINE_BYTES * 0.95:
        path = os.path.join(folder, "model.onnx")
        save(path, report.graph, report.shapes, report.costs)
        return path, onnx.load(path, load_external_data=False)
    proto = lower(report.graph, report.shapes, report.costs)
    return proto.SerializeToString(), proto


def _named(path: str, folder: str) -> tuple[bytes | str, Any]:
    """A file as it is, but every operator with a name of its own, by which its time is known."""
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
    beside = os.path.join(os.path.dirname(os.path.abspath(path)), "")
    for tensor in proto.graph.initializer:  # weights of a file beside it are found from here too
        for entry in tensor.external_data:
            if entry.key == "location":
                inside(path, entry.value)
                link = os.path.join(folder, entry.value)
                if not os.path.exists(link):
                    os.makedirs(os.path.dirname(link), exist_ok=True)
                    os.symlink(beside + entry.value, link)
    renamed = os.path.join(folder, "named.onnx")
    onnx.save(proto, renamed)
    return renamed, proto


def feeds(asked: list[Any], report: Report, seed: int = 0) -> dict[str, Any]:
    """Random numbers for the inputs of an onnxruntime session, indices within their tables."""
    import numpy

    from layerscope.lower.weights import rows_of

    source = numpy.random.default_rng(seed)
    shapes = {tensor.name: tensor.shape for tensor in report.inputs}
    made = {}
    for each in asked:
        shape = shapes.get(each.name) or tuple(
            size if isinstance(size, int) else 1 for size in each.shape
        )
        if each.type not in KINDS:
            raise EngineError(f"input {each.name} is a {each.type}, which is not fed")
        kind = numpy.dtype(KINDS[each.type])
        if kind.kind == "f":
            made[each.name] = source.uniform(-1, 1, shape).astype(kind)
        else:
            rows = rows_of(report.graph, each.name)
            made[each.name] = source.integers(0, max(rows, 1), shape).astype(kind)
    return made


def first_line(error: BaseException) -> str:
    """The first line of what an engine says, shortened."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300]
