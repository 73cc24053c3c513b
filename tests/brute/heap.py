"""Activation memory by simulation: storages made and freed node by node, as an allocator would."""

from __future__ import annotations

from dataclasses import dataclass, field

from layerscope.analysis.shapes import Shapes
from layerscope.graph.types import Graph, Node

VIEWS = ("reshape", "flatten", "identity", "dropout", "select", "insert", "view")
IN_PLACE = (
    "relu", "relu6", "clip", "abs", "threshold", "leaky_relu", "elu", "selu", "sigmoid", "tanh",
    "silu", "hard_sigmoid", "hard_swish", "gelu", "gelu_tanh", "softplus", "exp", "log", "sqrt",
    "neg", "prelu", "add", "sub", "mul", "div", "pow", "max", "min", "batch_norm",
    "scale",
)  # fmt: skip


@dataclass
class Storage:
    """A block of memory and every tensor that lives in it."""

    size: int
    mine: bool  # False: it is the caller's, not to be overwritten
    tensors: set[str] = field(default_factory=set)


def simulate(graph: Graph, shapes: Shapes, *, in_place: bool) -> list[int]:
    """Bytes held while each node runs."""
    heap = [Storage(tensor.bytes, False, {tensor.name}) for tensor in graph.inputs]
    heap += [Storage(0, False, {param.name}) for param in graph.params]  # not activations
    held = []
    for index, node in enumerate(graph.nodes):
        later = {name for after in graph.nodes[index + 1 :] for name in after.inputs}
        needed = later | set(graph.outputs)
        for n, name in enumerate(node.outputs):
            size = shapes.tensors[name].bytes
            block = _reused(heap, node, size, needed, in_place) if n == 0 else None
            if block is None:
                block = Storage(size, True)
                heap.append(block)
            block.tensors.add(name)
        held.append(sum(block.size for block in heap))
        heap = [block for block in heap if block.tensors & needed]
    return held


def _reused(
    heap: list[Storage], node: Node, size: int, needed: set[str], in_place: bool
) -> Storage | None:
    """The block of an input that the first output is put into."""
    blocks = [block for name in node.inputs for block in heap if name in block.tensors]
    if node.op in VIEWS:
        return blocks[0]
    if not in_place or node.op not in IN_PLACE:
        return None
    for block in blocks:
        if block.mine and block.size == size and not block.tensors & needed:
            return block
    return None
