"""The course-note sheets: weights without biases, activations as elements, no operations."""

from __future__ import annotations

from layerscope.conventions.convention import Convention, no_figure
from layerscope.conventions.counted_nodes import CountedNode
from layerscope.graph.types import Node, elements
from layerscope.ops import SPECS, Call

# Op families whose layers have no line on a sheet: they run in place, or after the scores.
UNLISTED = ("normalization", "activation", "softmax", "loss")


def has_line(node: Node, call: Call | None) -> bool:
    """Whether a sheet has a line for this layer: it writes a new tensor, not in place."""
    rule = SPECS.get(node.op)
    if rule is None:
        return True
    if rule.view or rule.family in UNLISTED:
        return False
    return not (rule.family == "pooling" and call is not None and _copies_input(call))


def _copies_input(call: Call) -> bool:
    """Whether a pool has windows of one element, such as 7x7 bins on a 7x7 map."""
    window = getattr(call.attributes, "window", None)
    return call.x == call.y and (window is None or window.positions == 1)


def _weights(node: CountedNode) -> int:
    return sum(param.elements for param in node.cost.first if param.role == "weight")


def _activations(node: CountedNode) -> int:
    return sum(map(elements, node.call.outputs)) if has_line(node.node, node.call) else 0


CONVENTION = Convention(
    name="cs231n",
    says="weights without biases; elements of the input and of layers not done in place",
    figure="",
    headline=no_figure,
    params=_weights,
    activations=_activations,
    counts_inputs=True,
)
