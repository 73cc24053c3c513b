"""The course-note sheets: weights without biases, activations as elements, no operations."""

from __future__ import annotations

from layerscope.analysis.costs import Cost
from layerscope.conventions.convention import Convention, no_figure
from layerscope.graph.types import Node, elements
from layerscope.ops import RULES, Call

IN_PLACE = ("normalization", "activation")  # families whose layers have no line on a sheet


def has_line(node: Node, call: Call) -> bool:
    """Whether a sheet gives this layer a line: it makes new data, and not in place."""
    rule = RULES[node.op]
    if rule.view or rule.family in IN_PLACE:
        return False
    return not (rule.family == "pooling" and call.inputs[0] == call.outputs[0])


def _weights(node: Node, call: Call | None, cost: Cost) -> int:
    return sum(param.elements for param in cost.params if param.role == "weight")


def _activations(node: Node, call: Call, written: int) -> int:
    return sum(map(elements, call.outputs)) if has_line(node, call) else 0


CONVENTION = Convention(
    name="cs231n",
    says="weights without biases; elements of the input and of layers not done in place",
    figure="",
    headline=no_figure,
    params=_weights,
    activations=_activations,
    counts_inputs=True,
    counts_ops=False,
)
