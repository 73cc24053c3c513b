"""ptflops 0.7.5, its default backend: module classes, and functions that it wraps.

A module whose forward calls a wrapped function is counted twice. Child modules of a counted module
are not counted, so the projections in timm's Attention are missed.
"""

from __future__ import annotations

from layerscope.conventions.convention import Convention
from layerscope.conventions.counted_nodes import ATTENTION, CountedNode
from layerscope.conventions.functions import (
    BATCH_NORM_CLASSES,
    CONV_CLASSES,
    CONV_TRANSPOSE_CLASSES,
    GATES,
    INSTANCE_NORM_CLASSES,
    JOINS,
    MATMUL,
    POOL_CLASSES,
    POOLS,
    RECURRENT_CLASSES,
    TWO_PRODUCTS,
    UPSAMPLES,
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
    products_and_bias,
    steps,
    two_products,
)
from layerscope.graph.types import elements
from layerscope.ops import FREE, Ops
from layerscope.ops.attention import Sizes

TIMM = ("timm.layers.attention.Attention", "timm.models.vision_transformer.Attention")


def _upsample(node: CountedNode) -> Ops:
    """Output elements of the first example of the batch only."""
    return Ops(add=elements(node.call.y[1:]))


def _recurrent(node: CountedNode) -> Ops:
    """Weights of one direction, doubled if there are two, and combining the gates."""
    directions = 2 if node.call.attributes.bidirectional else 1
    gates = GATES[cell(node)]
    joins = JOINS[cell(node)]
    macs = adds = 0
    for size, hidden in layers(node):
        macs += gates * hidden * (size + hidden)
        adds += joins * hidden + (2 * gates * hidden if biased(node) else 0)
    return Ops(mac=macs, add=adds) * (steps(node) * directions)


CLASSES: dict[str, Rule] = {
    **one((*CONV_CLASSES, *CONV_TRANSPOSE_CLASSES, "Linear"), products_and_bias),
    **one(("ReLU", "PReLU", "ELU", "LeakyReLU", "ReLU6", "GELU"), per_output(1)),
    **one(POOL_CLASSES, per_input(1)),
    **one((*BATCH_NORM_CLASSES, *INSTANCE_NORM_CLASSES, "GroupNorm"), norm(1, 2)),
    "LayerNorm": per_input(1),
    "Upsample": _upsample,
    **one(RECURRENT_CLASSES, _recurrent),
}
FUNCTIONS: dict[str, Rule] = {
    **one(("relu", "prelu", "elu", "relu6", "gelu", "silu", "softmax", *POOLS), per_input(1)),
    **one(UPSAMPLES, per_output(1)),
    **one((*MATMUL, "addmm", "baddbmm"), products),
    TWO_PRODUCTS: two_products,
}


def _attention(node: CountedNode) -> Ops:
    """Scaled queries, both products, and a softmax of the scores."""
    s = Sizes(node.call)
    queries = s.batch * s.queries * s.heads * s.key_size
    return Ops(mac=node.ops.mac, add=queries + s.scores)


# Rules for the ops inside an attention class, which it counts as a whole.
INSIDE: dict[str, Rule] = {
    "attention": _attention,
    "matmul": products,
    "softmax": per_input(1),
    "mul": per_output(1),
}
PROJECTED = {**INSIDE, "linear": products_and_bias}


def module_ops(node: CountedNode) -> Ops:
    """The share of this node in what its module, or an attention module around it, counts."""
    if node.outer_classes[-1] == ATTENTION:
        return PROJECTED.get(node.op, free)(node)
    if node.outer_classes[-1] in TIMM and not node.module_class:
        return INSIDE.get(node.op, free)(node)
    hidden = any(name == ATTENTION or name in TIMM for name in node.outer_classes)
    return FREE if hidden else CLASSES.get(node.module_class, free)(node)


# Classes that it counts as a whole, with whatever is in them.
COUNTED = frozenset((*CLASSES, ATTENTION, *TIMM))


def count_of_module(node: CountedNode) -> tuple[str, Ops]:
    """The module that this node is counted for, and its share in what that module prints."""
    around = node.outer_classes[-1] if node.outer_classes else ""
    if around == ATTENTION or (around in TIMM and not node.module_class):
        return ".".join(node.node.scope), module_ops(node)
    path = node.leaf_path or node.node.module
    return path, CLASSES.get(node.module_class, free)(node)


def _count(node: CountedNode) -> Ops:
    module = module_ops(node) * node.module_uses
    return module if node.fused else module + FUNCTIONS.get(node.function, free)(node)


CONVENTION = Convention(
    name="ptflops",
    says="MACs with biases, norms, activations and pools, twice where a module calls a function",
    figure="MACs",
    headline=lambda ops: ops.mac + ops.add,
    sees="modules",
    count=_count,
    counted_params="trainable",
    why={
        "linear layers inside attention modules": "a class it counts hides what is inside",
        "fused attention": "it does not wrap that function",
    },
)
