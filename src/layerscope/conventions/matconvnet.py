"""MatConvNet's display: weights, biases and batch-norm moments in bytes, no operations."""

from __future__ import annotations

from layerscope.analysis.costs import Cost
from layerscope.conventions.convention import Convention, no_figure
from layerscope.graph.types import Node, elements
from layerscope.ops import Call


def _stored(node: Node, call: Call | None, cost: Cost) -> int:
    """Every stored array, moments included."""
    return cost.param_count + cost.buffer_count


CONVENTION = Convention(
    name="matconvnet",
    says="parameters with biases and moments, data of every layer and the input; operations not counted",
    figure="",
    headline=no_figure,
    params=_stored,
    activations=lambda node, call, written: sum(map(elements, call.outputs)),
    counts_inputs=True,
    counts_ops=False,
)
