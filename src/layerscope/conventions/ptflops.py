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
    INSTANCE_NORM_CLASSES,
    MATMUL,
    POOL_CLASSES,
    POOLS,
    RECURRENT_CLASSES,
    TWO_PRODUCTS,
    UPSAMPLES,
    Rule,
    biased,
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
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[site.kind]
    joins = {"RNN": 1, "GRU": 7, "LSTM": 10}[site.kind]
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


def _inside(site: Site) -> str:
    """The class of a counted module that has this in it."""
    return next((kind for kind in site.around if kind == ATTENTION or kind in TIMM), "")


def _attention(site: Site, inside: str) -> Ops:
    """What the class of attention costs, counted where its products are."""
    if site.node.op != "attention" or site.around[-1] != inside:
        return FREE
    s = Sizes(site.call)
    tokens, width = s.batch * s.queries, s.heads * s.key_size
    macs = s.scores * (s.key_size + s.value_size)
    adds = tokens * width + s.scores  # scaling, softmax
    if inside == ATTENTION:
        others = 2 * s.batch * s.keys
        macs += (tokens + others) * width**2 + tokens * width**2
        adds += (tokens + others) * width + tokens * width
    return Ops(mac=macs, add=adds)


def _seen(site: Site) -> Ops:
    inside = _inside(site)
    module = _attention(site, inside) if inside else CLASSES.get(site.kind, free)(site)
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
