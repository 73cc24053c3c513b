"""Shape inference: every tensor's shape and every node's call, checked on the way."""

from __future__ import annotations

from itertools import zip_longest

from msgspec import Struct

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Opaque
from layerscope.graph.types import Graph, Node, Shape, Tensor
from layerscope.ops import RULES, Call
from layerscope.ops.known import called
from layerscope.ops.rule import made_dtype

Tensors = tuple[Tensor, ...]


class Shapes(Struct, frozen=True, gc=False):
    """What inference found. A node without a call is unknown, and `notes` says why."""

    tensors: dict[str, Tensor]
    calls: dict[str, Call]
    notes: dict[str, str]
    ends: dict[str, tuple[Tensors, Tensors]]  # what each node reads and makes


def infer(graph: Graph) -> Shapes:
    """Walk the graph once in its order; nodes alike in op, attributes and shapes share a call."""
    tensors: dict[str, Tensor] = {tensor.name: tensor for tensor in graph.inputs}
    for param in graph.params:
        tensors[param.name] = Tensor(param.name, param.shape, param.dtype)
    for tensor in graph.inputs:
        if tensor.shape is not None and min(tensor.shape, default=1) < 1:
            raise ShapeError(f"{graph.name}: input {tensor.name} has shape {tensor.shape}")
    calls: dict[str, Call] = {}
    notes: dict[str, str] = {}
    ends: dict[str, tuple[Tensors, Tensors]] = {}
    seen: dict[tuple[str, int, int, tuple[Shape, ...]], Call] = {}
    known: Tensors
    shapes: tuple[Shape, ...]
    for node in graph.nodes:
        name, op, attributes, outputs = node.name, node.op, node.attributes, node.outputs
        inputs = node.inputs
        if len(inputs) == 1:  # most nodes, in half the time
            tensor = tensors[inputs[0]]
            known, dtype = (tensor,), tensor.dtype
            shapes = () if tensor.shape is None else (tensor.shape,)
        else:
            known, shapes, dtype = _read(inputs, tensors, graph.dtype)
        rule = RULES.get(op)
        if rule is None or len(shapes) != len(known):
            notes[name] = _unknown(op, known)
            told = attributes.shapes if isinstance(attributes, Opaque) else ()
            blank = zip_longest(outputs, told[: len(outputs)])
            made = tuple([Tensor(each, shape, dtype) for each, shape in blank])
        else:
            # The graph keeps its attributes alive, so an id stands for a value here.
            key = (op, len(outputs), id(attributes), shapes)
            call = seen.get(key)
            if call is None:
                call = seen[key] = _call(graph, node, shapes)
            calls[name] = call
            if rule.makes or len(outputs) != 1:
                made = _made(graph, node, call, known, dtype)
            else:
                made = (Tensor(outputs[0], call.outputs[0], dtype),)
        ends[name] = (known, made)
        for tensor in made:
            tensors[tensor.name] = tensor
    return Shapes(tensors, calls, notes, ends)


def _read(
    names: tuple[str, ...], tensors: dict[str, Tensor], none: str
) -> tuple[Tensors, tuple[Shape, ...], str]:
    """What a node reads: the tensors, the shapes that are known, and the first one's dtype."""
    known = tuple([tensors[name] for name in names])
    shapes = tuple([shape for tensor in known if (shape := tensor.shape) is not None])
    return known, shapes, known[0].dtype if known else none


def _made(graph: Graph, node: Node, call: Call, known: Tensors, dtype: str) -> Tensors:
    """What a node makes, each in its own number type."""
    makes = RULES[node.op].makes
    kinds = [tensor.dtype for tensor in known]
    made = []
    for n, (name, shape) in enumerate(zip(node.outputs, call.outputs, strict=True)):
        kind = made_dtype(makes, n, node.attributes, kinds, graph.dtype) if makes else dtype
        made.append(Tensor(name, shape, kind))
    return tuple(made)


def _unknown(op: str, inputs: Tensors) -> str:
    """Why a node has no call."""
    if op not in RULES:
        return f"no rule for op {op}"
    return f"shape of {next(t.name for t in inputs if t.shape is None)} is unknown"


def _where(graph: Graph, node: Node) -> str:
    return f"{node.source}: {node.name}" if node.source else f"{graph.name}: {node.name}"


def _call(graph: Graph, node: Node, shapes: tuple[Shape, ...]) -> Call:
    try:
        call = called(node.op, node.attributes, shapes)
    except ShapeError as error:
        raise ShapeError(f"{_where(graph, node)}: {error}") from None
    if len(call.outputs) != len(node.outputs):
        raise ShapeError(
            f"{_where(graph, node)}: {node.op} makes {len(call.outputs)} tensors, "
            f"{len(node.outputs)} are named"
        )
    return call
