"""Shape inference: every tensor's shape and every node's call, checked on the way."""

from __future__ import annotations

from itertools import zip_longest

from msgspec import Struct

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Opaque
from layerscope.graph.types import Graph, Node, Shape, Tensor
from layerscope.ops import RULES, Call
from layerscope.ops.rule import made_dtype


class Shapes(Struct, frozen=True, gc=False):
    """What inference found. A node without a call is unknown, and `notes` says why."""

    tensors: dict[str, Tensor]
    calls: dict[str, Call]
    notes: dict[str, str]


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
    seen: dict[tuple[str, int, tuple[Shape, ...]], Call] = {}
    for node in graph.nodes:
        op, attributes, outputs = node.op, node.attributes, node.outputs
        known = [tensors[name] for name in node.inputs]
        dtype = known[0].dtype if known else graph.dtype
        shapes = tuple([shape for tensor in known if (shape := tensor.shape) is not None])
        rule = RULES.get(op)
        if rule is None or len(shapes) != len(known):
            notes[node.name] = _unknown(op, known)
            told = attributes.shapes if isinstance(attributes, Opaque) else ()
            for name, shape in zip_longest(outputs, told[: len(outputs)]):
                tensors[name] = Tensor(name, shape, dtype)
            continue
        # The graph keeps its attributes alive, so an id stands for a value here.
        key = (op, id(attributes), shapes)
        call = seen.get(key)
        if call is None:
            call = seen[key] = _call(graph, node, shapes)
        calls[node.name] = call
        made, makes = call.outputs, rule.makes
        if len(made) != len(outputs):
            raise ShapeError(
                f"{_where(graph, node)}: {op} makes {len(made)} tensors, {len(outputs)} are named"
            )
        if not makes and len(made) == 1:  # most nodes
            name = outputs[0]
            tensors[name] = Tensor(name, made[0], dtype)
            continue
        kinds = [tensor.dtype for tensor in known]
        for n, name in enumerate(outputs):
            kind = made_dtype(makes, n, attributes, kinds, graph.dtype) if makes else dtype
            tensors[name] = Tensor(name, made[n], kind)
    return Shapes(tensors, calls, notes)


def _unknown(op: str, inputs: list[Tensor]) -> str:
    """Why a node has no call."""
    if op not in RULES:
        return f"no rule for op {op}"
    return f"shape of {next(t.name for t in inputs if t.shape is None)} is unknown"


def _where(graph: Graph, node: Node) -> str:
    return f"{node.source}: {node.name}" if node.source else f"{graph.name}: {node.name}"


def _call(graph: Graph, node: Node, shapes: tuple[Shape, ...]) -> Call:
    rule = RULES[node.op]
    least, most = rule.arity
    where = _where(graph, node)
    if len(shapes) < least or (most is not None and len(shapes) > most):
        expected = f"{least}" if least == most else f"{least} to {most or 'any number'}"
        raise ShapeError(f"{where}: {node.op} of {len(shapes)} inputs, expected {expected}")
    try:
        outputs = rule.shape(Call(node.attributes, shapes))
    except ShapeError as error:
        raise ShapeError(f"{where}: {error}") from None
    return Call(node.attributes, shapes, outputs)
