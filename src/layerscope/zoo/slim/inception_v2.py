"""Inception v2 (Inception with batch norm, Ioffe and Szegedy 2015) as TF-Slim has it."""

from __future__ import annotations

from layerscope.builder import Builder
from layerscope.graph.types import Graph
from layerscope.zoo.slim.inception import STYLE, Branches, SlimLayer, average, chain, halving, mixed
from layerscope.zoo.slim.layers import SAME, SlimConv, conv, logits

MULTIPLIER = 8  # outputs per channel of the depthwise part of the first convolution

# 1x1; reduction and 3x3; reduction and twice 3x3; projection after the pool
INCEPTIONS = {
    "Mixed_3b": (64, 64, 64, 64, 96, 32),
    "Mixed_3c": (64, 64, 96, 64, 96, 64),
    "Mixed_4b": (224, 64, 96, 96, 128, 128),
    "Mixed_4c": (192, 96, 128, 96, 128, 128),
    "Mixed_4d": (160, 128, 160, 128, 160, 96),
    "Mixed_4e": (96, 128, 192, 160, 192, 96),
    "Mixed_5b": (352, 192, 320, 160, 224, 128),
    "Mixed_5c": (352, 192, 320, 192, 224, 128),
}
# reduction and 3x3; reduction and twice 3x3; the last of each takes the stride, as does the pool
REDUCTIONS = {"Mixed_4a": (128, 160, 64, 96), "Mixed_5a": (128, 192, 192, 256)}
AFTER = {"Mixed_3c": "Mixed_4a", "Mixed_4e": "Mixed_5a"}
MAX_POOLED = "Mixed_5c"  # the others have an average pool


def inception_v2(name: str, separable: bool) -> Graph:
    """Inception v2 on 224x224, whose first convolution is separable or not."""
    b = Builder(name, separator="/")
    x = b.input("data", (1, 3, 224, 224))
    x = _first(b, x, "Conv2d_1a_7x7", separable)
    x = chain(
        b,
        x,
        (
            halving("MaxPool_2a_3x3", padding=SAME),
            SlimLayer("Conv2d_2b_1x1", 1, 64),
            SlimLayer("Conv2d_2c_3x3", 3, 192),
            halving("MaxPool_3a_3x3", padding=SAME),
        ),
    )
    for block in INCEPTIONS:
        x = mixed(b, x, block, _inception(block))
        if block in AFTER:
            x = mixed(b, x, AFTER[block], _reduction(AFTER[block]))
    return b.build(logits(b, x, 1000, keep=0.8))


def _first(b: Builder, x: str, name: str, separable: bool) -> str:
    if not separable:
        return conv(b, x, SlimConv(64, 7, stride=2), name, STYLE)
    depthwise = f"{name}/depthwise"
    x = b.conv(x, 3 * MULTIPLIER, 7, stride=2, padding=SAME, groups=3, bias=False, name=depthwise)
    return conv(b, x, SlimConv(64, 1), name, STYLE)


def _inception(block: str) -> Branches:
    one, reduce3, three, reduce_twice, twice, projected = INCEPTIONS[block]
    first = SlimLayer("MaxPool_0a_3x3", 3) if block == MAX_POOLED else average()
    return (
        (SlimLayer("Conv2d_0a_1x1", 1, one),),
        (SlimLayer("Conv2d_0a_1x1", 1, reduce3), SlimLayer("Conv2d_0b_3x3", 3, three)),
        (
            SlimLayer("Conv2d_0a_1x1", 1, reduce_twice),
            SlimLayer("Conv2d_0b_3x3", 3, twice),
            SlimLayer("Conv2d_0c_3x3", 3, twice),
        ),
        (first, SlimLayer("Conv2d_0b_1x1", 1, projected)),
    )


def _reduction(block: str) -> Branches:
    reduce3, three, reduce_twice, twice = REDUCTIONS[block]
    return (
        (SlimLayer("Conv2d_0a_1x1", 1, reduce3), halving("Conv2d_1a_3x3", three, padding=SAME)),
        (
            SlimLayer("Conv2d_0a_1x1", 1, reduce_twice),
            SlimLayer("Conv2d_0b_3x3", 3, twice),
            halving("Conv2d_1a_3x3", twice, padding=SAME),
        ),
        (halving("MaxPool_1a_3x3", padding=SAME),),
    )
