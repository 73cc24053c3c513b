"""MatConvNet's display: weights, biases and batch-norm moments in bytes, no operations."""

from __future__ import annotations

from layerscope.analysis.costs import Cost
from layerscope.conventions.convention import Convention, no_figure
from layerscope.graph.types import Node, elements
from layerscope.ops import SPECS, Call

NO_LAYER = ("flatten", "reshape", "identity")  # views that only rename: MatConvNet has none


def _stored(node: Node, call: Call | None, cost: Cost) -> int:
    """Every stored array, moments included."""
    return cost.param_count + cost.buffer_count


def _data(node: Node, call: Call, written: int) -> int:
    """Every layer's output, in place or not; a loss leaves one number a position."""
    if node.op in NO_LAYER:
        return 0
    if SPECS[node.op].family == "loss":
        return elements(call.x[2:])
    return sum(map(elements, call.outputs))


CONVENTION = Convention(
    name="matconvnet",
    says="parameters with biases and moments; data of every layer and the input; no operations",
    figure="",
    headline=no_figure,
    params=_stored,
    activations=_data,
    counts_inputs=True,
)
