"""What TF-Slim's Inceptions share: tables of branches that end in a concat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from layerscope.builder import Builder
from layerscope.graph.attributes import BatchNorm
from layerscope.zoo.slim.layers import SAME, VALID, SlimConv, SlimPool, Style, conv, pool

STYLE = Style(BatchNorm(eps=0.001, scale=False))


class SlimLayer(Struct, frozen=True):
    """One layer of a branch: a convolution, or a pool if it has no channels."""

    name: str
    kernel: int | tuple[int, int]
    channels: int = 0
    stride: int = 1
    padding: str | int = SAME
    kind: Literal["max", "avg"] = "max"


Fork = tuple[SlimLayer, ...]  # steps side by side
Branch = tuple[SlimLayer | Fork, ...]
Branches = tuple[Branch, ...]


def average(name: str = "AvgPool_0a_3x3") -> SlimLayer:
    """The average pool of 3x3 that begins the last branch of most blocks."""
    return SlimLayer(name, 3, kind="avg")


def chain(b: Builder, x: str, steps: Sequence[SlimLayer | Fork]) -> str:
    """Steps one after the other."""
    for step in steps:
        if isinstance(step, tuple):
            x = b.concat(*[_step(b, x, part) for part in step], name="concat")
        else:
            x = _step(b, x, step)
    return x


def mixed(b: Builder, x: str, name: str, branches: Branches) -> str:
    """A block of branches; the concat that ends it bears its name."""
    ends = []
    with b.scope(name):
        for n, branch in enumerate(branches):
            with b.scope(f"Branch_{n}"):
                ends.append(chain(b, x, branch))
    return b.concat(*ends, name=name)


def _step(b: Builder, x: str, step: SlimLayer) -> str:
    if not step.channels:
        kernel = step.kernel if isinstance(step.kernel, int) else step.kernel[0]
        return pool(b, x, SlimPool(step.kind, kernel, step.stride, step.padding), step.name)
    layer = SlimConv(step.channels, step.kernel, step.stride, step.padding)
    return conv(b, x, layer, step.name, STYLE)


def halving(name: str, channels: int = 0, *, padding: str | int = VALID) -> SlimLayer:
    """A window of 3x3 that takes every second position: a convolution, or a max pool."""
    return SlimLayer(name, 3, channels, 2, padding)
