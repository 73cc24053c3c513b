"""ptflops 0.7.5, its default backend: classes of modules, and functions that it wraps.

A module whose forward calls a wrapped function is counted by both. What a counted module holds
inside is not counted again, so projections in timm's Attention are not counted at all.
"""

from __future__ import annotations

from layerscope.conventions.convention import Convention
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
from layerscope.conventions.sites import ATTENTION, Site
from layerscope.graph.types import elements
from layerscope.ops import FREE, Ops
from layerscope.ops.attention import Sizes

TIMM = ("timm.layers.attention.Attention", "timm.models.vision_transformer.Attention")


def _upsample(site: Site) -> Ops:
    """Of the first example of a batch alone."""
    return Ops(add=elements(site.call.y[1:]))


def _recurrent(site: Site) -> Ops:
    """Weights of one direction, doubled if there are two, and what joins the gates."""
    told = site.call.attributes
    gates = GATES[cell(site)]
    joins = JOINS[cell(site)]
    macs = adds = 0
    for size, hidden in layers(site):
        macs += gates * hidden * (size + hidden)
        adds += joins * hidden + (2 * gates * hidden if biased(site) else 0)
    return Ops(mac=macs, add=adds) * (steps(site) * (2 if told.bidirectional else 1))


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


def _attention(site: Site) -> Ops:
    """Scaled queries, both products, and a softmax of the scores."""
    s = Sizes(site.call)
    queries = s.batch * s.queries * s.heads * s.key_size
    return Ops(mac=site.ops.mac, add=queries + s.scores)


# What classes of attention count, told by the operations in them.
INSIDE: dict[str, Rule] = {
    "attention": _attention,
    "matmul": products,
    "softmax": per_input(1),
    "mul": per_output(1),
}
PROJECTED = {**INSIDE, "linear": products_and_bias}


def _module(site: Site) -> Ops:
    """What the module is counted for that this is of, or that has this in it."""
    if site.around[-1] == ATTENTION:
        return PROJECTED.get(site.node.op, free)(site)
    if site.around[-1] in TIMM and not site.kind:
        return INSIDE.get(site.node.op, free)(site)
    hidden = any(kind == ATTENTION or kind in TIMM for kind in site.around)
    return FREE if hidden else CLASSES.get(site.kind, free)(site)


def _seen(site: Site) -> Ops:
    module = _module(site) * site.places
    return module if site.fused else module + FUNCTIONS.get(site.function, free)(site)


CONVENTION = Convention(
    name="ptflops",
    says="MACs with biases, norms, activations and pools, twice where a module calls a function",
    figure="MACs",
    headline=lambda ops: ops.mac + ops.add,
    seen=_seen,
    learned="trainable",
    why={
        "linear layers inside attention modules": "a class it counts hides what is inside",
        "fused attention": "it does not wrap that function",
    },
)
