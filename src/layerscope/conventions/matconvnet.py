"""MatConvNet's display: weights, biases and batch-norm moments in bytes, no operations."""

from __future__ import annotations

from layerscope.conventions.convention import Convention, no_figure
from layerscope.conventions.counted_nodes import CountedNode
from layerscope.graph.types import elements
from layerscope.ops import SPECS

NO_LAYER = ("flatten", "reshape", "identity")  # views, which MatConvNet has no layers for


def _stored(node: CountedNode) -> int:
    """Elements of every stored array, batch-norm moments included."""
    return node.cost.param_count + node.cost.buffer_count


def _data(node: CountedNode) -> int:
    """Elements of every output, also of layers in place; a loss has one per position."""
    if node.op in NO_LAYER:
        return 0
    if SPECS[node.op].family == "loss":
        return elements(node.call.x[2:])
    return sum(map(elements, node.call.outputs))


CONVENTION = Convention(
    name="matconvnet",
    says="parameters with biases and moments; data of every layer and the input; no operations",
    figure="",
    headline=no_figure,
    params=_stored,
    activations=_data,
    counts_inputs=True,
)
