"""AlexNet of Krizhevsky 2014, one tower, as TF-Slim has it: no linear layer, windows instead."""

from __future__ import annotations

from layerscope.builder import Builder
from layerscope.graph.types import Graph
from layerscope.zoo.slim.layers import SAME, VALID, SlimConv, SlimPool, Style, conv, pool

# channels, kernel, stride, padding
CONVS: tuple[tuple[int, int, int, str | int], ...] = (
    (64, 11, 4, VALID),
    (192, 5, 1, SAME),
    (384, 3, 1, SAME),
    (384, 3, 1, SAME),
    (256, 3, 1, SAME),
)
POOLED = (1, 2, 5)


def alexnet_v2() -> Graph:
    """alexnet_v2 on 224x224; its end points are named under alexnet_v2/."""
    b = Builder("alexnet_v2-slim", separator="/")
    x = b.input("data", (1, 3, 224, 224))
    with b.scope("alexnet_v2"):
        for n, (channels, kernel, stride, padding) in enumerate(CONVS, 1):
            x = conv(b, x, SlimConv(channels, kernel, stride, padding), f"conv{n}", Style())
            if n in POOLED:
                x = pool(b, x, SlimPool("max", stride=2, padding=VALID), f"pool{n}")
        x = conv(b, x, SlimConv(4096, 5, padding=VALID), "fc6", Style())
        x = conv(b, b.dropout(x, name="dropout6"), SlimConv(4096, 1), "fc7", Style())
        x = conv(b, b.dropout(x, name="dropout7"), SlimConv(1000, 1), "fc8", Style(activation=""))
        x = b.flatten(x, name="squeezed")
    return b.build(x)
