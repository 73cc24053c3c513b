"""Constants, ranges and shapes. Values that a graph does not contain are arbitrary."""

from __future__ import annotations

from layerscope.graph.attributes import DeclaredOutputs
from layerscope.lower.builder import FLOATS, Emitter, NodeEmitter, OnnxConstant


def constant(node: NodeEmitter) -> tuple[str, ...]:
    """Ones, or zeros for integers, which may be indices."""
    a: DeclaredOutputs = node.attributes
    pairs = zip(a.shapes, a.dtypes, strict=True)
    return tuple(
        node.builder.full(shape, 1.0 if kind in FLOATS else 0, kind) for shape, kind in pairs
    )


def select(node: NodeEmitter) -> tuple[str, ...]:
    """The inputs of the first branch, one for each output."""
    outputs = node.call.outputs
    if node.call.inputs[: len(outputs)] != outputs:
        raise node.refuse("its outputs are not inputs of the same shapes")
    kinds = [node.builder.shapes.tensors[name].dtype for name in node.outputs]
    return tuple(node.add("Identity", node.operand(n, kind)) for n, kind in enumerate(kinds))


def count(node: NodeEmitter) -> str:
    if len(node.call.y) != 1:
        raise node.refuse(f"a range of shape {node.call.y}, expected one axis")
    return node.add(
        "Identity",
        node.builder.constant(OnnxConstant(range(node.call.y[0]), node.call.y, node.dtype)),
    )


def shape_of(node: NodeEmitter) -> str:
    return node.add("Shape", node.x)


EMITTERS: dict[str, Emitter] = {
    "constant": constant,
    "select": select,
    "range": count,
    "shape_of": shape_of,
}

REFUSED = {
    "random": "a graph does not contain the random values",
    "custom": "its computation is unknown",
}
