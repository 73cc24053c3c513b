"""SqueezeNet of Iandola and others 2016 as torchvision has it, versions 1.0 and 1.1."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from layerscope.builder import Builder
from layerscope.graph.types import Graph

POOL = 0
Stages = Sequence[int]  # the squeezed channels of each fire module, and where a pool stands

V1_0 = (96, 7, (POOL, 16, 16, 32, POOL, 32, 48, 48, 64, POOL, 64))
V1_1 = (64, 3, (POOL, 16, 16, POOL, 32, 32, POOL, 48, 48, 64, 64))


def squeezenet1_0() -> Graph:
    """SqueezeNet 1.0."""
    return network("squeezenet1_0", *V1_0)


def squeezenet1_1() -> Graph:
    """SqueezeNet 1.1, where the first window is smaller and pools come earlier."""
    return network("squeezenet1_1", *V1_1)


def network(name: str, channels: int, kernel: int, stages: Stages) -> Graph:
    """A SqueezeNet that begins with so many channels under a window of that size."""
    b = Builder(name, "SqueezeNet")
    x = b.input("data", (1, 3, 224, 224))
    index = count()
    with b.scope("features", "Sequential"):
        x = b.conv(x, channels, kernel, stride=2, name=str(next(index)))
        x = b.relu(x, in_place=True, name=str(next(index)))
        for squeezed in stages:
            if squeezed == POOL:
                x = b.max_pool(x, 3, stride=2, rounding="torch", name=str(next(index)))
                continue
            with b.scope(str(next(index)), "Fire"):
                x = _fire(b, x, squeezed)
    with b.scope("classifier", "Sequential"):
        x = b.conv(b.dropout(x, name="0"), 1000, 1, name="1")
        x = b.adaptive_pool(b.relu(x, in_place=True, name="2"), 1, name="3")
    return b.build(b.flatten(x, name="flatten"))


def _fire(b: Builder, x: str, squeezed: int) -> str:
    """Each half of the output has four times the squeezed channels."""
    x = b.conv(x, squeezed, 1, name="squeeze")
    x = b.relu(x, in_place=True, name="squeeze_activation")
    small = b.conv(x, 4 * squeezed, 1, name="expand1x1")
    small = b.relu(small, in_place=True, name="expand1x1_activation")
    large = b.conv(x, 4 * squeezed, 3, padding=1, name="expand3x3")
    large = b.relu(large, in_place=True, name="expand3x3_activation")
    return b.concat(small, large, name="cat")
