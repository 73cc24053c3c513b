"""Shape inference: every tensor's shape and every node's call, checked on the way."""

from __future__ import annotations

from itertools import zip_longest

from msgspec import Struct

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Opaque
from layerscope.graph.types import Graph, Node, Shape, Tensor
from layerscope.ops import SPECS, Call
from layerscope.ops.calls import infer_call
from layerscope.ops.spec import out_dtype
from layerscope.ops.uncounted_shapes import opaque_shapes

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
        least = 0 if graph.own_layout else 1  # files have empty tensors; elsewhere it is a mistake
        if tensor.shape is not None and min(tensor.shape, default=1) < least:
            raise ShapeError(f"{graph.name}: input {tensor.name} has shape {tensor.shape}")
    calls: dict[str, Call] = {}
    notes: dict[str, str] = {}
    ends: dict[str, tuple[Tensors, Tensors]] = {}
    # The graph keeps its attributes alive and tensors their shapes: an id stands for a value here.
    seen: dict[tuple[str, int, int, int, int], tuple[Call, Shape | None]] = {}
    for node in graph.nodes:
        name, inputs, outputs = node.name, node.inputs, node.outputs
        alike = key = None
        if len(inputs) == 1:
            tensor = tensors[inputs[0]]
            known: Tensors = (tensor,)
            dtype = tensor.dtype
            key = (node.op, id(node.attributes), id(tensor.shape), 0, len(outputs))
            alike = seen.get(key)
        elif len(inputs) == 2:
            tensor, other = tensors[inputs[0]], tensors[inputs[1]]
            known = (tensor, other)
            dtype = tensor.dtype
            key = (node.op, id(node.attributes), id(tensor.shape), id(other.shape), len(outputs))
            alike = seen.get(key)
        else:
            known = tuple([tensors[each] for each in inputs])
            dtype = known[0].dtype if known else graph.dtype
        if alike is None:
            call = _call(graph, node, known, notes)
            one = None
            if call is not None and len(outputs) == 1 and not SPECS[node.op].out_dtypes:
                [one] = call.outputs
            if call is not None and key is not None:
                seen[key] = (call, one)
        else:
            call, one = alike
        if one is not None:
            tensor = tensors[outputs[0]] = Tensor(outputs[0], one, dtype)
            made: Tensors = (tensor,)
        else:
            made = _made(graph, node, call, known, dtype)
            for tensor in made:
                tensors[tensor.name] = tensor
        if call is not None:
            calls[name] = call
        ends[name] = (known, made)
    return Shapes(tensors, calls, notes, ends)


def _made(graph: Graph, node: Node, call: Call | None, known: Tensors, dtype: str) -> Tensors:
    """What a node makes, each in its own number type."""
    if call is None:
        told = node.attributes if isinstance(node.attributes, Opaque) else Opaque(())
        count = len(node.outputs)
        shapes = opaque_shapes(told, known) if told.infer else told.shapes
        known_of = shapes[:count], told.dtypes[:count], told.declared[:count]
        return tuple(
            [
                Tensor(name, shape, kind or dtype, None, bool(declared))
                for name, shape, kind, declared in zip_longest(node.outputs, *known_of)
            ]
        )
    makes = SPECS[node.op].out_dtypes
    kinds = [tensor.dtype for tensor in known]
    made = []
    for n, (name, shape) in enumerate(zip(node.outputs, call.outputs, strict=True)):
        kind = out_dtype(makes, n, node.attributes, kinds, graph.dtype) if makes else dtype
        made.append(Tensor(name, shape, kind))
    return tuple(made)


def _unknown(node: Node, inputs: Tensors) -> str:
    """Why a node has no call."""
    if isinstance(node.attributes, Opaque) and node.attributes.why:
        return node.attributes.why
    if node.op not in SPECS:
        return f"no rule for op {node.op}"
    return f"shape of {next(t.name for t in inputs if t.shape is None)} is unknown"


def _where(graph: Graph, node: Node) -> str:
    return f"{node.source}: {node.name}" if node.source else f"{graph.name}: {node.name}"


def _call(graph: Graph, node: Node, known: Tensors, notes: dict[str, str]) -> Call | None:
    """The call of a node; None, and a note of why, where it is unknown."""
    shapes = tuple([shape for tensor in known if (shape := tensor.shape) is not None])
    if node.op not in SPECS or len(shapes) != len(known):
        notes[node.name] = _unknown(node, known)
        return None
    try:
        call = infer_call(node.op, node.attributes, shapes)
    except ShapeError as error:
        raise ShapeError(f"{_where(graph, node)}: {error}") from None
    if len(call.outputs) != len(node.outputs):
        raise ShapeError(
            f"{_where(graph, node)}: {node.op} makes {len(call.outputs)} tensors, "
            f"{len(node.outputs)} are named"
        )
    return call
