"""ONNX models: structure skimmed, shapes worked out by the rules here, weights never touched."""

from __future__ import annotations

import os

from layerscope.codecs.protobuf import VARINT, Wire, mapped
from layerscope.errors import FormatError, ShapeError, UsageError
from layerscope.formats import ReadOptions
from layerscope.formats.onnx.inputs import COUNTED, GUESSES, Binding, check_kinds
from layerscope.formats.onnx.known import Env, Known
from layerscope.formats.onnx.numbers import FLOATS
from layerscope.formats.onnx.reader import Assumed, Reader
from layerscope.formats.onnx.scopes import arranged
from layerscope.formats.onnx.skim import Model, Operator, Value, model_of
from layerscope.graph.types import Graph, Shape, Source, Tensor

IR_VERSION, PRODUCER, GRAPH, OPSETS = 1, 2, 7, 8
FIELDS = range(1, 27)


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
        return IR_VERSION in seen
    return IR_VERSION in seen and GRAPH in seen


def read(path: str, options: ReadOptions) -> Graph:
    """The network in a file."""
    if options.weights is not None:
        raise UsageError(f"{path} has its own weights; --weights goes with a prototxt")
    with mapped(path) as wire:
        if wire.data[4:8] == b"ORTM":
            raise FormatError(f"{path}: a model in ONNX Runtime's own format, expected ONNX")
        return _guessed(wire, model_of(wire), options)


def _guessed(wire: Wire, model: Model, options: ReadOptions) -> Graph:
    """The graph on the first sizes that it can take, where the file leaves any open."""
    first: ShapeError | None = None
    for guess in range(len(GUESSES)):
        try:
            return _graph(wire, model, options, guess)
        except Assumed as error:
            first = first or ShapeError(str(error))
    assert first is not None
    raise first


def _graph(wire: Wire, model: Model, options: ReadOptions, guess: int) -> Graph:
    from layerscope.formats.onnx.operators import CONVERTERS

    reader = Reader(wire, model, CONVERTERS)
    part = model.graph
    env: Env = {}
    for stored in part.stored:
        if stored.name in env:
            raise FormatError(f"{wire.name}: two initializers are named {stored.name!r}")
        env[stored.name] = reader.store(stored.name, stored, ())
    inputs = [value for value in part.inputs if value.name not in env]
    check_kinds(inputs, wire.name)
    binding = Binding(inputs, options.inputs, options.dims, options.batch, wire.name, guess)
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
    reader.dtype = _floating(tensors, reader)
    values = dict(part.values)
    values.update({value.name: value for value in part.outputs})
    reader.walk(in_order(part.nodes, env, wire.name), env, values=values)
    outputs: list[str] = []
    for value in part.outputs:
        known = env.get(value.name)
        if known is None:
            raise FormatError(f"{wire.name}: output {value.name!r} is made by nothing")
        items = known.items if known.items is not None else [known]
        outputs.extend(reader.input_name(item) for item in items if item.tensor)
    reader.nodes = arranged(reader.nodes)
    stem = os.path.splitext(os.path.basename(wire.name))[0]
    return reader.graph(stem, tensors, tuple(dict.fromkeys(outputs)))


def _input(value: Value, binding: Binding, reader: Reader, tensors: list[Tensor]) -> Known:
    """A graph input: a tensor, or as many as a sequence or an optional is said to hold."""
    dtype = value.dtype or "fp32"

    def tensor(name: str, shape: Shape | None, why: str) -> Known:
        tensors.append(Tensor(name, shape, dtype, Source(reader.file)))
        reader.tensors[name] = (shape, dtype)
        reader.trace.inputs[name] = f"graph input {name!r} {why}" if shape is None else ""
        return Known(name, shape, dtype)

    if value.kind in ("map", "sequence map"):
        return tensor(value.name, None, "is a map, whose length is data")
    shape = binding.shape(value)
    why = "has no declared shape; --input tells it"
    if value.kind not in COUNTED:
        return tensor(value.name, shape, why)
    count = binding.items(value)
    if value.kind == "optional":
        return tensor(value.name, shape, why) if count else Known("", None, dtype, empty=True)
    items = [tensor(f"{value.name}[{n}]", shape, why) for n in range(count)]
    return Known(value.name, None, dtype, items=items)


def _as_declared(value: Value, shape: Shape) -> bool:
    """Whether an input has the sizes that the file declares, where it does."""
    dims = value.dims or ()
    return len(dims) == len(shape) and all(
        dim.size in (None, size) for dim, size in zip(dims, shape, strict=True)
    )


def _floating(tensors: list[Tensor], reader: Reader) -> str:
    """The float type of the network: of its inputs, else of its largest array."""
    for tensor in tensors:
        if tensor.dtype in FLOATS:
            return tensor.dtype
    kinds = [entry.dtype for entry in reader.entries if entry.dtype in FLOATS and entry.shape]
    return max(kinds, key=kinds.count) if kinds else "fp32"


def in_order(nodes: list[Operator], env: Env, file: str) -> list[Operator]:
    """Nodes so that each comes after what it reads; files are meant to be so and mostly are."""
    known = set(env)
    known.add("")  # an input that is left out
    for node in nodes:
        if not known.issuperset(node.inputs):
            return _sorted(nodes, env, file)
        known.update(node.outputs)
    return nodes


def _sorted(nodes: list[Operator], env: Env, file: str) -> list[Operator]:
    makers: dict[str, int] = {}
    for n, node in enumerate(nodes):
        for name in node.outputs:
            if name:
                makers[name] = n
    waits: list[int] = []
    readers: dict[int, list[int]] = {}
    for n, node in enumerate(nodes):
        sources = {makers[name] for name in node.inputs if name in makers and name not in env}
        waits.append(len(sources))
        for source in sources:
            readers.setdefault(source, []).append(n)
        for name in node.inputs:
            if name and name not in makers and name not in env:
                told = node.name or node.op
                raise FormatError(f"{file}: {told} reads {name!r}, which nothing makes")
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
            f"{file}: {stuck.name or stuck.op} depends on itself: the graph is a circle"
        )
    return ordered
