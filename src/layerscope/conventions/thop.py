"""thop 0.1.1: leaf modules by class; a class without a rule has no MACs and no parameters."""

from __future__ import annotations

from fractions import Fraction

from layerscope.conventions.convention import Convention
from layerscope.conventions.counted_nodes import CountedNode
from layerscope.conventions.functions import (
    BATCH_NORM_CLASSES,
    CONV_CLASSES,
    CONV_TRANSPOSE_CLASSES,
    GATES,
    INSTANCE_NORM_CLASSES,
    RANKS,
    RECURRENT_CLASSES,
    Rule,
    biased,
    cell,
    free,
    layers,
    norm,
    one,
    per_input,
    per_output,
    products,
    steps,
)
from layerscope.graph.types import elements
from layerscope.ops import Ops


def _conv(node: CountedNode) -> Ops:
    """Output elements times the inputs of each, also for transposed convolutions."""
    attrs, x = node.call.attributes, node.call.x
    return Ops(mac=elements(node.call.y) * (x[1] // attrs.groups) * attrs.window.positions)


def _softmax(node: CountedNode) -> Ops:
    x = node.call.x
    size = x[node.call.attributes.axis]
    return Ops(add=elements(x) // size * (3 * size - 1))


def _adaptive_average(node: CountedNode) -> Ops:
    """The mean size of the windows plus one, per output element."""
    x, y = node.call.x[2:], node.call.y[2:]
    return Ops(add=int((Fraction(elements(x), elements(y)) + 1) * elements(node.call.y)))


def _upsample(node: CountedNode) -> Ops:
    mode = node.call.attributes.mode
    if len(node.call.x) == 5 and mode != "nearest":
        return Ops()
    linear = 11 if len(node.call.x) == 4 else 5
    cost = {"nearest": 1, "linear": linear, "bilinear": linear, "bicubic": 259, "cubic": 259}
    return Ops(add=cost.get(mode, 0) * elements(node.call.y))


def _recurrent(node: CountedNode) -> Ops:
    """Both products, a sum and two biases per gate, and combining the gates."""
    gates = GATES[cell(node)]
    joins = {"RNN": 0, "GRU": 4, "LSTM": 4}[cell(node)]
    directions = 2 if node.call.attributes.bidirectional else 1
    macs = adds = 0
    for size, hidden in layers(node):
        macs += gates * (size + hidden) * hidden
        adds += gates * hidden * (3 if biased(node) else 1) + joins * hidden
    return Ops(mac=macs, add=adds) * (steps(node) * directions)


RULES: dict[str, Rule] = {
    **one((*CONV_CLASSES, *CONV_TRANSPOSE_CLASSES), _conv),
    **one((*BATCH_NORM_CLASSES, *INSTANCE_NORM_CLASSES, "LayerNorm"), norm(2, 4)),
    "SyncBatchNorm": norm(2, 4),
    "Linear": products,
    "PReLU": per_input(1),
    "Softmax": _softmax,
    **one([f"AvgPool{n}d" for n in RANKS], per_output(1)),
    **one([f"AdaptiveAvgPool{n}d" for n in RANKS], _adaptive_average),
    **one(("Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"), _upsample),
    **one(RECURRENT_CLASSES, _recurrent),
}


def _count(node: CountedNode) -> Ops:
    """A module with n paths in the model gets n hooks and is summed n times: n² in all."""
    return RULES.get(node.module_class, free)(node) * node.module_uses**2


def _params(node: CountedNode) -> int:
    """Parameters of modules that it has a rule for, each module once."""
    leaf = node.leaf_call
    if node.inferred_call is None:
        return node.cost.param_count
    if leaf is None or leaf.module_class not in RULES or leaf.repeated:
        return 0
    return leaf.param_count * node.module_uses


CONVENTION = Convention(
    name="thop",
    says="MACs by class of leaf module, 4 per element of a norm; unknown classes cost, hold none",
    figure="MACs",
    headline=lambda ops: ops.mac + ops.add,
    sees="modules",
    count=_count,
    params=_params,
    why={
        "transposed convolutions": "it counts output positions, not input positions",
        "attention modules": "it has no rule for the class",
    },
)
