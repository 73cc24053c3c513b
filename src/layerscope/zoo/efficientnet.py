"""EfficientNet of Tan and Le 2019 (B0 to B7) and 2021 (V2), as torchvision has them."""

from __future__ import annotations

from itertools import count
from math import ceil
from typing import NamedTuple

from layerscope.builder import Builder
from layerscope.graph.attributes import BatchNorm
from layerscope.graph.types import Graph
from layerscope.zoo.blocks import (
    ConvNorm,
    SqueezeExcite,
    conv_norm,
    residual,
    rounded,
    squeeze_excite,
    stochastic_depth,
)


class Stage(NamedTuple):
    """Blocks of one kind, the first of which takes the stride."""

    block: str
    expansion: int
    kernel: int
    stride: int
    channels: int
    depth: int


MB, FUSED = "MBConv", "FusedMBConv"
B = (
    Stage(MB, 1, 3, 1, 16, 1),
    Stage(MB, 6, 3, 2, 24, 2),
    Stage(MB, 6, 5, 2, 40, 2),
    Stage(MB, 6, 3, 2, 80, 3),
    Stage(MB, 6, 5, 1, 112, 3),
    Stage(MB, 6, 5, 2, 192, 4),
    Stage(MB, 6, 3, 1, 320, 1),
)
V2_S = (
    Stage(FUSED, 1, 3, 1, 24, 2),
    Stage(FUSED, 4, 3, 2, 48, 4),
    Stage(FUSED, 4, 3, 2, 64, 4),
    Stage(MB, 4, 3, 2, 128, 6),
    Stage(MB, 6, 3, 1, 160, 9),
    Stage(MB, 6, 3, 2, 256, 15),
)
V2_M = (
    Stage(FUSED, 1, 3, 1, 24, 3),
    Stage(FUSED, 4, 3, 2, 48, 5),
    Stage(FUSED, 4, 3, 2, 80, 5),
    Stage(MB, 4, 3, 2, 160, 7),
    Stage(MB, 6, 3, 1, 176, 14),
    Stage(MB, 6, 3, 2, 304, 18),
    Stage(MB, 6, 3, 1, 512, 5),
)
V2_L = (
    Stage(FUSED, 1, 3, 1, 32, 4),
    Stage(FUSED, 4, 3, 2, 64, 7),
    Stage(FUSED, 4, 3, 2, 96, 7),
    Stage(MB, 4, 3, 2, 192, 10),
    Stage(MB, 6, 3, 1, 224, 19),
    Stage(MB, 6, 3, 2, 384, 25),
    Stage(MB, 6, 3, 1, 640, 7),
)
PLAIN = BatchNorm()
SLOW = BatchNorm(eps=0.001, momentum=0.01)
SAFE = BatchNorm(eps=0.001)
DROP = 0.2  # of residual branches at the end, growing from none at the beginning


class EfficientNetConfig(NamedTuple):
    """A whole network: input size, dropout, channels of the stem, stages, what ends it, norm."""

    size: int
    dropout: float
    stem: int
    stages: tuple[Stage, ...]
    last: int = 0  # channels before the classes, 0 for four times those of the last stage
    norm: BatchNorm = PLAIN


def scaled(width: float, depth: float) -> tuple[Stage, ...]:
    """The stages of B0 with channels and depths multiplied."""
    return tuple(
        stage._replace(channels=rounded(stage.channels * width), depth=ceil(stage.depth * depth))
        for stage in B
    )


CONFIGS = {
    "efficientnet_b0": EfficientNetConfig(224, 0.2, 32, B),
    "efficientnet_b1": EfficientNetConfig(240, 0.2, 32, scaled(1.0, 1.1)),
    "efficientnet_b2": EfficientNetConfig(288, 0.3, 32, scaled(1.1, 1.2)),
    "efficientnet_b3": EfficientNetConfig(300, 0.3, 40, scaled(1.2, 1.4)),
    "efficientnet_b4": EfficientNetConfig(380, 0.4, 48, scaled(1.4, 1.8)),
    "efficientnet_b5": EfficientNetConfig(456, 0.4, 48, scaled(1.6, 2.2), norm=SLOW),
    "efficientnet_b6": EfficientNetConfig(528, 0.5, 56, scaled(1.8, 2.6), norm=SLOW),
    "efficientnet_b7": EfficientNetConfig(600, 0.5, 64, scaled(2.0, 3.1), norm=SLOW),
    "efficientnet_v2_s": EfficientNetConfig(384, 0.2, 24, V2_S, 1280, SAFE),
    "efficientnet_v2_m": EfficientNetConfig(480, 0.3, 24, V2_M, 1280, SAFE),
    "efficientnet_v2_l": EfficientNetConfig(480, 0.4, 32, V2_L, 1280, SAFE),
}


def efficientnet(name: str) -> Graph:
    """The EfficientNet of that name."""
    return network(name, CONFIGS[name])


def network(name: str, config: EfficientNetConfig) -> Graph:
    """An EfficientNet by its config."""
    b = Builder(name, "EfficientNet")
    x = b.input("data", (1, 3, config.size, config.size))
    norm, into = config.norm, config.stem
    blocks = sum(stage.depth for stage in config.stages)
    done = 0
    with b.scope("features", "Sequential"):
        x = conv_norm(b, x, ConvNorm(into, 3, stride=2, activation="silu", norm=norm), "0")
        for n, stage in enumerate(config.stages, 1):
            with b.scope(str(n), "Sequential"):
                for m in range(stage.depth):
                    stage = stage._replace(stride=1) if m else stage
                    drop = DROP * float(done) / blocks
                    with b.scope(str(m), stage.block):
                        y = _block(b, x, into, stage, norm)
                        if stage.stride == 1 and into == stage.channels:
                            x = residual(b, y, x, drop)
                        else:
                            stochastic_depth(b, drop)
                            x = y
                    into = stage.channels
                    done += 1
        end = str(len(config.stages) + 1)
        x = conv_norm(b, x, ConvNorm(config.last or 4 * into, 1, activation="silu", norm=norm), end)
    x = b.flatten(b.global_pool(x, name="avgpool"), name="flatten")
    with b.scope("classifier", "Sequential"):
        x = b.linear(b.dropout(x, config.dropout, in_place=True, name="0"), 1000, name="1")
    return b.build(x)


def _block(b: Builder, x: str, into: int, stage: Stage, norm: BatchNorm) -> str:
    with b.scope("block", "Sequential"):
        return (_inverted if stage.block == MB else _fused)(b, x, into, stage, norm)


def _inverted(b: Builder, x: str, into: int, stage: Stage, norm: BatchNorm) -> str:
    wide = rounded(into * stage.expansion)
    index = map(str, count())
    if wide != into:
        x = conv_norm(b, x, ConvNorm(wide, 1, activation="silu", norm=norm), next(index))
    depthwise = ConvNorm(wide, stage.kernel, stage.stride, wide, "silu", norm)
    x = conv_norm(b, x, depthwise, next(index))
    excite = SqueezeExcite(wide, max(1, into // 4), inner="silu", in_place=True)
    x = squeeze_excite(b, x, excite, next(index))
    return conv_norm(b, x, ConvNorm(stage.channels, 1, norm=norm), next(index))


def _fused(b: Builder, x: str, into: int, stage: Stage, norm: BatchNorm) -> str:
    """Fused block: one convolution instead of the 1x1 and the depthwise one, no excitation."""
    wide = rounded(into * stage.expansion)
    first = stage.channels if wide == into else wide
    fused = ConvNorm(first, stage.kernel, stage.stride, activation="silu", norm=norm)
    x = conv_norm(b, x, fused, "0")
    return x if wide == into else conv_norm(b, x, ConvNorm(stage.channels, 1, norm=norm), "1")
