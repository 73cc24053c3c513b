"""Shape inference: the shape and dtype of every tensor, and the call of every node."""

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
    """Result of shape inference. A node without a call is unknown, and `notes` says why."""

    tensors: dict[str, Tensor]
    calls: dict[str, Call]
    notes: dict[str, str]
    ends: dict[str, tuple[Tensors, Tensors]]  # inputs and outputs of each node
    memo: dict[str, object] = {}  # what is derived from them once, by the module that derives it


def infer(graph: Graph) -> Shapes:
    """Walk the graph once; nodes of equal op, attributes and shapes share a call."""
    tensors: dict[str, Tensor] = {tensor.name: tensor for tensor in graph.inputs}
    for param in graph.params:
        tensors[param.name] = Tensor(param.name, param.shape, param.dtype)
    for tensor in graph.inputs:
        least = 0 if graph.own_layout else 1  # only files may have empty tensors
        if tensor.shape is not None and min(tensor.shape, default=1) < least:
            raise ShapeError(f"{graph.name}: input {tensor.name} has shape {tensor.shape}")
    calls: dict[str, Call] = {}
    notes: dict[str, str] = {}
    ends: dict[str, tuple[Tensors, Tensors]] = {}
    # Local to this walk. The graph keeps attributes and shapes alive, so that no id is used twice;
    # unlike values, ids need no hashing of nested attributes for every node.
    seen: dict[tuple[str, int, int, int, int], tuple[Call, Shape | None]] = {}
    for node in graph.nodes:
        name, inputs, outputs = node.name, node.inputs, node.outputs
        cached = key = None
        if len(inputs) == 1:
            tensor = tensors[inputs[0]]
            given: Tensors = (tensor,)
            dtype = tensor.dtype
            key = (node.op, id(node.attributes), id(tensor.shape), 0, len(outputs))
            cached = seen.get(key)
        elif len(inputs) == 2:
            tensor, other = tensors[inputs[0]], tensors[inputs[1]]
            given = (tensor, other)
            dtype = tensor.dtype
            key = (node.op, id(node.attributes), id(tensor.shape), id(other.shape), len(outputs))
            cached = seen.get(key)
        else:
            given = tuple([tensors[each] for each in inputs])
            dtype = given[0].dtype if given else graph.dtype
        if cached is None:
            call = _call(graph, node, given, notes)
            shape = None  # of a single output in the dtype of the first input
            if call is not None and len(outputs) == 1 and not SPECS[node.op].out_dtypes:
                [shape] = call.outputs
            if call is not None and key is not None:
                seen[key] = (call, shape)
        else:
            call, shape = cached
        if shape is not None:
            tensor = tensors[outputs[0]] = Tensor(outputs[0], shape, dtype)
            results: Tensors = (tensor,)
        else:
            results = _outputs(graph, node, call, given, dtype)
            for tensor in results:
                tensors[tensor.name] = tensor
        if call is not None:
            calls[name] = call
        ends[name] = (given, results)
    return Shapes(tensors, calls, notes, ends)


def _outputs(graph: Graph, node: Node, call: Call | None, given: Tensors, dtype: str) -> Tensors:
    """Outputs of a node, each in its own dtype; `dtype` is that of the first input."""
    if call is None:
        attrs = node.attributes if isinstance(node.attributes, Opaque) else Opaque(())
        count = len(node.outputs)
        shapes = opaque_shapes(attrs, given) if attrs.infer else attrs.shapes
        columns = shapes[:count], attrs.dtypes[:count], attrs.declared[:count]
        return tuple(
            [
                Tensor(name, shape, kind or dtype, None, bool(declared))
                for name, shape, kind, declared in zip_longest(node.outputs, *columns)
            ]
        )
    rules = SPECS[node.op].out_dtypes
    dtypes = [tensor.dtype for tensor in given]
    results = []
    for n, (name, shape) in enumerate(zip(node.outputs, call.outputs, strict=True)):
        kind = out_dtype(rules, n, node.attributes, dtypes, graph.dtype) if rules else dtype
        results.append(Tensor(name, shape, kind))
    return tuple(results)


def _unknown(node: Node, inputs: Tensors) -> str:
    """Why a node has no call."""
    if isinstance(node.attributes, Opaque) and node.attributes.why:
        return node.attributes.why
    if node.op not in SPECS:
        return f"no rule for op {node.op}"
    return f"shape of {next(t.name for t in inputs if t.shape is None)} is unknown"


def _where(graph: Graph, node: Node) -> str:
    return f"{node.source}: {node.name}" if node.source else f"{graph.name}: {node.name}"


def _call(graph: Graph, node: Node, given: Tensors, notes: dict[str, str]) -> Call | None:
    """The call of a node; None where it is unknown, and a note says why."""
    shapes = tuple([shape for tensor in given if (shape := tensor.shape) is not None])
    if node.op not in SPECS or len(shapes) != len(given):
        notes[node.name] = _unknown(node, given)
        return None
    try:
        call = infer_call(node.op, node.attributes, shapes)
    except ShapeError as error:
        located = ShapeError(f"{_where(graph, node)}: {error}")
        located.node = node.name
        raise located from None
    if len(call.outputs) != len(node.outputs):
        raise ShapeError(
            f"{_where(graph, node)}: {node.op} has {len(call.outputs)} outputs, "
            f"{len(node.outputs)} are named"
        )
    return call
