"""ONNX models: the structure is parsed, shapes are inferred by the ops' rules, weights not read."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Sequence

from layerscope.codecs.protobuf import VARINT, Wire, mapped
from layerscope.errors import FormatError, ShapeError, UsageError
from layerscope.formats import ReadOptions
from layerscope.formats.onnx.dtypes import FLOATS
from layerscope.formats.onnx.input_shapes import COUNTED, GUESSES, Binding, check_kinds
from layerscope.formats.onnx.node_view import GraphContext, Unsorted
from layerscope.formats.onnx.reader import Assumed, Reader
from layerscope.formats.onnx.scopes import without_trivial_scopes
from layerscope.formats.onnx.skim import ModelProto, NodeProto, ValueInfo, model_of
from layerscope.formats.onnx.tensor_info import Env, TensorInfo
from layerscope.graph.types import Graph, Shape, Source, Tensor

IR_VERSION, PRODUCER, GRAPH, OPSETS = 1, 2, 7, 8
FIELDS = range(1, 27)
# Tag and length of a graph, of its first node, and of that node's first input or output.
GRAPH_FIRST = re.compile(
    rb"\x3a[\x80-\xff]{0,9}[\x00-\x7f]\x0a[\x80-\xff]{0,4}[\x01-\x7f][\x0a\x12]"
)


def recognise(head: bytes) -> bool:
    """Whether a file begins with the version of an ONNX model, or another field of one."""
    seen = set()
    try:
        for number, kind, value, _ in Wire(head, "").fields():
            if number not in FIELDS or (number == IR_VERSION and kind != VARINT):
                return False
            if number == IR_VERSION and not 0 < value < 1000:
                return False
            seen.add(number)
    except FormatError as error:  # where the head ends
        if "are left" not in str(error) and "cut off" not in str(error):
            return False
        return IR_VERSION in seen or _begins_with_graph(head)
    return IR_VERSION in seen and GRAPH in seen


def _begins_with_graph(head: bytes) -> bool:
    """Whether a file begins with a graph, and that with a node: other writers order fields so."""
    return GRAPH_FIRST.match(head) is not None


def read(path: str, options: ReadOptions) -> Graph:
    """The network in a file."""
    if options.weights is not None:
        raise UsageError(f"{path} has its own weights; --weights goes with a prototxt")
    with mapped(path) as wire:
        if wire.data[4:8] == b"ORTM":
            raise FormatError(f"{path}: a model in ONNX Runtime's own format, expected ONNX")
        return _import_with_guesses(wire, model_of(wire), options)


def _import_with_guesses(wire: Wire, model: ModelProto, options: ReadOptions) -> Graph:
    """The graph with the first guess of open input sizes that all its shapes agree with."""
    first: ShapeError | None = None
    left = wire.left
    for guess in range(len(GUESSES)):
        wire.left = left
        try:
            return _import_sorted(wire, model, options, guess)
        except Assumed as error:
            first = first or ShapeError(str(error))
    assert first is not None
    raise first


def _import_sorted(wire: Wire, model: ModelProto, options: ReadOptions, guess: int) -> Graph:
    """The graph in the order of the file, which ONNX requires to be topological, else sorted."""
    try:
        return _import_graph(wire, model, options, guess)
    except Unsorted:
        part = model.graph
        given = {stored.name for stored in part.stored} | {each.name for each in part.inputs}
        part.nodes = _sorted([*part.nodes], given, wire.name)
        return _import_graph(wire, model, options, guess)


def _import_graph(wire: Wire, model: ModelProto, options: ReadOptions, guess: int) -> Graph:
    from layerscope.formats.onnx.converters import converter_of

    reader = Reader(wire, model, converter_of)
    part = model.graph
    env: Env = {}
    for stored in part.stored:
        if stored.name in env:
            raise FormatError(f"{wire.name}: two initializers are named {stored.name!r}")
        env[stored.name] = reader.store(stored.name, stored, ())
    inputs = [value for value in part.inputs if value.name not in env]
    check_kinds(inputs, wire.name)
    binding = Binding(inputs, options, wire.name, guess)
    tensors: list[Tensor] = []
    for value in inputs:
        if value.name in env or not value.name:
            raise FormatError(f"{wire.name}: two inputs are named {value.name!r}")
        env[value.name] = _input(value, binding, reader, tensors)
    reader.binding = binding
    reader.trusts_declared = all(
        shape is None or value.dims is None or _as_declared(value, shape)
        for value, shape in ((value, env[value.name].shape) for value in inputs)
    )
    reader.assumed = binding.note()
    if reader.assumed:
        reader.notes.append(reader.assumed)
    reader.dtype = _float_dtype(tensors, reader)
    values = dict(part.values)
    values.update({value.name: value for value in part.outputs})
    context = GraphContext(env, model.opsets, values=values)
    reader.walk(part.nodes, context)
    outputs: list[str] = []
    for value in part.outputs:
        info = env.get(value.name)
        if info is None:
            raise FormatError(f"{wire.name}: no node computes the output {value.name!r}")
        items = info.items if info.items is not None else [info]
        outputs.extend(reader.input_name(item) for item in items if item.tensor)
    reader.nodes = without_trivial_scopes(reader.nodes)
    stem = os.path.splitext(os.path.basename(wire.name))[0]
    return reader.graph(stem, tensors, tuple(dict.fromkeys(outputs)))


def _input(value: ValueInfo, binding: Binding, reader: Reader, tensors: list[Tensor]) -> TensorInfo:
    """A graph input: one tensor, or several if it is a sequence."""
    dtype = value.dtype or "fp32"

    def tensor(name: str, shape: Shape | None, why: str) -> TensorInfo:
        tensors.append(Tensor(name, shape, dtype, Source(reader.file)))
        reader.tensors[name] = (shape, dtype)
        reader.trace.inputs[name] = f"graph input {name!r} {why}" if shape is None else ""
        return TensorInfo(name, shape, dtype)

    if value.kind in ("map", "sequence map"):
        return tensor(value.name, None, "is a map, whose length is run-time data")
    shape = binding.shape(value)
    why = "has no declared shape; --input tells it"
    if value.kind not in COUNTED:
        return tensor(value.name, shape, why)
    count = binding.items(value)
    if value.kind == "optional":
        return tensor(value.name, shape, why) if count else TensorInfo("", None, dtype, empty=True)
    items = [tensor(f"{value.name}[{n}]", shape, why) for n in range(count)]
    return TensorInfo(value.name, None, dtype, items=items)


def _as_declared(value: ValueInfo, shape: Shape) -> bool:
    """Whether an input has the sizes that the file declares."""
    dims = value.dims or ()
    return len(dims) == len(shape) and all(
        dim.size in (None, size) for dim, size in zip(dims, shape, strict=True)
    )


def _float_dtype(tensors: list[Tensor], reader: Reader) -> str:
    """The float dtype of the network: that of an input, else the most common one of arrays."""
    for tensor in tensors:
        if tensor.dtype in FLOATS:
            return tensor.dtype
    arrays = reader.initializers
    dtypes = [entry.dtype for entry in arrays if entry.dtype in FLOATS and entry.shape]
    return max(dtypes, key=dtypes.count) if dtypes else "fp32"


def _sorted(nodes: Sequence[NodeProto], given: Container[str], file: str) -> list[NodeProto]:
    """Nodes in topological order; `given` are initializers and inputs."""
    producers: dict[str, int] = {}
    for n, node in enumerate(nodes):
        for name in node.outputs:
            if name:
                producers[name] = n
    waits: list[int] = []
    readers: dict[int, list[int]] = {}
    for n, node in enumerate(nodes):
        inputs = [name for name in node.inputs if name not in given]
        sources = {producers[name] for name in inputs if name in producers}
        waits.append(len(sources))
        for source in sources:
            readers.setdefault(source, []).append(n)
        for name in inputs:
            if name and name not in producers:
                raise FormatError(
                    f"{file}: {node.name or node.op} reads {name!r}, which no node computes"
                )
    ready = [n for n, count in enumerate(waits) if not count]
    ordered = []
    for n in ready:
        ordered.append(nodes[n])
        for reader in readers.get(n, ()):
            waits[reader] -= 1
            if not waits[reader]:
                ready.append(reader)
    if len(ordered) != len(nodes):
        stuck = next(node for node, count in zip(nodes, waits, strict=True) if count)
        raise FormatError(
            f"{file}: {stuck.name or stuck.op} depends on itself: the graph has a cycle"
        )
    return ordered
