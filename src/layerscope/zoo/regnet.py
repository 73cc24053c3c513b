"""RegNet of Radosavovic and others 2020 as torchvision has it, X and with excitation Y."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from layerscope.builder import Builder
from layerscope.graph.types import Graph
from layerscope.zoo.blocks import ConvNorm, SqueezeExcite, conv_norm, squeeze_excite

Stages = tuple[tuple[int, int], ...]  # channels and blocks


class RegNetConfig(NamedTuple):
    """A RegNet: its stages, the channels of a group, and whether blocks are excited."""

    stages: Stages
    group: int
    excited: bool


class RegNetBlock(Struct, frozen=True):
    """A bottleneck with a grouped convolution."""

    channels: int
    stride: int
    groups: int
    kernel: int
    squeezed: int  # channels inside its squeeze and excitation, 0 for none


# Torchvision rounds 384, the last channels of the paper's X, to 400.
CONFIGS = {
    "regnet_x_400mf": RegNetConfig(((32, 1), (64, 2), (160, 7), (400, 12)), 16, False),
    "regnet_y_400mf": RegNetConfig(((48, 1), (104, 3), (208, 6), (440, 6)), 8, True),
}
STEM = 32


def regnet(name: str) -> Graph:
    """The RegNet of that name."""
    return network(name, CONFIGS[name])


def network(name: str, config: RegNetConfig, *, kernel: int = 3) -> Graph:
    """A RegNet by its config; `kernel` is the window of the grouped convolutions."""
    b = Builder(name, "RegNet")
    x = b.input("data", (1, 3, 224, 224))
    x = conv_norm(
        b, x, ConvNorm(STEM, 3, stride=2, activation="relu"), "stem", module="SimpleStemIN"
    )
    into = STEM
    with b.scope("trunk_output", "Sequential"):
        for n, (channels, depth) in enumerate(config.stages, 1):
            with b.scope(f"block{n}", "AnyStage"):
                for m in range(depth):
                    squeezed = round(into / 4) if config.excited else 0
                    groups = channels // config.group
                    block = RegNetBlock(channels, 1 if m else 2, groups, kernel, squeezed)
                    with b.scope(f"block{n}-{m}", "ResBottleneckBlock"):
                        x = _block(b, x, into, block)
                    into = channels
    x = b.flatten(b.adaptive_pool(x, 1, name="avgpool"), name="flatten")
    return b.build(b.linear(x, 1000, name="fc"))


def _block(b: Builder, x: str, into: int, block: RegNetBlock) -> str:
    channels, stride = block.channels, block.stride
    shortcut = x
    if stride > 1 or into != channels:
        shortcut = conv_norm(b, x, ConvNorm(channels, 1, stride=stride), "proj")
    with b.scope("f", "BottleneckTransform"):
        y = conv_norm(b, x, ConvNorm(channels, 1, activation="relu"), "a")
        grouped = ConvNorm(channels, block.kernel, stride, block.groups, activation="relu")
        y = conv_norm(b, y, grouped, "b")
        if block.squeezed:
            y = squeeze_excite(b, y, SqueezeExcite(channels, block.squeezed), "se")
        y = conv_norm(b, y, ConvNorm(channels, 1), "c")
    return b.relu(b.add(shortcut, y, name="add"), in_place=True, name="activation")
