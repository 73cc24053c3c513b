"""MobileNet: v1 of Howard and others 2017 as in the paper, v2 and v3 as torchvision has them."""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

from layerscope.builder import Builder
from layerscope.graph.attributes import BatchNorm
from layerscope.graph.types import Graph
from layerscope.zoo.blocks import (
    ConvNorm,
    InvertedResidual,
    SqueezeExcite,
    averaged,
    conv_norm,
    rounded,
    squeeze_excite,
)

# v1: channels and stride of each pair of depthwise and pointwise convolutions
PAIRS = (
    *((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)),
    *((512, 1),) * 5,
    *((1024, 2), (1024, 1)),
)
# v2: expansion, channels, depth, stride
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class InvertedBottleneck(NamedTuple):
    """A block of v3, as a row of the paper's tables."""

    kernel: int
    wide: int  # channels between the 1x1 convolutions
    out: int
    excited: bool
    activation: str
    stride: int


RE, HS = "relu", "hard_swish"
LARGE = (
    InvertedBottleneck(3, 16, 16, False, RE, 1),
    InvertedBottleneck(3, 64, 24, False, RE, 2),
    InvertedBottleneck(3, 72, 24, False, RE, 1),
    InvertedBottleneck(5, 72, 40, True, RE, 2),
    InvertedBottleneck(5, 120, 40, True, RE, 1),
    InvertedBottleneck(5, 120, 40, True, RE, 1),
    InvertedBottleneck(3, 240, 80, False, HS, 2),
    InvertedBottleneck(3, 200, 80, False, HS, 1),
    InvertedBottleneck(3, 184, 80, False, HS, 1),
    InvertedBottleneck(3, 184, 80, False, HS, 1),
    InvertedBottleneck(3, 480, 112, True, HS, 1),
    InvertedBottleneck(3, 672, 112, True, HS, 1),
    InvertedBottleneck(5, 672, 160, True, HS, 2),
    InvertedBottleneck(5, 960, 160, True, HS, 1),
    InvertedBottleneck(5, 960, 160, True, HS, 1),
)
SMALL = (
    InvertedBottleneck(3, 16, 16, True, RE, 2),
    InvertedBottleneck(3, 72, 24, False, RE, 2),
    InvertedBottleneck(3, 88, 24, False, RE, 1),
    InvertedBottleneck(5, 96, 40, True, HS, 2),
    InvertedBottleneck(5, 240, 40, True, HS, 1),
    InvertedBottleneck(5, 240, 40, True, HS, 1),
    InvertedBottleneck(5, 120, 48, True, HS, 1),
    InvertedBottleneck(5, 144, 48, True, HS, 1),
    InvertedBottleneck(5, 288, 96, True, HS, 2),
    InvertedBottleneck(5, 576, 96, True, HS, 1),
    InvertedBottleneck(5, 576, 96, True, HS, 1),
)
TABLES = {"mobilenet_v3_large": (LARGE, 1280), "mobilenet_v3_small": (SMALL, 1024)}
NORM = BatchNorm(eps=0.001, momentum=0.01)


def mobilenet_v1(name: str = "mobilenet_v1", width: float = 1, *, kernel: int = 3) -> Graph:
    """MobileNet v1; `kernel` is the window of the depthwise convolutions."""
    b = Builder(name, "MobileNetV1")
    x = b.input("data", (1, 3, 224, 224))
    into = int(32 * width)
    with b.scope("features", "Sequential"):
        x = conv_norm(b, x, ConvNorm(into, 3, stride=2, activation="relu"), "0")
        for n, (channels, stride) in enumerate(PAIRS, 1):
            out = int(channels * width)
            with b.scope(str(n), "DepthwiseSeparable"):
                depthwise = ConvNorm(into, kernel, stride, groups=into, activation="relu")
                x = conv_norm(b, x, depthwise, "depthwise")
                x = conv_norm(b, x, ConvNorm(out, 1, activation="relu"), "pointwise")
            into = out
    x = b.flatten(b.adaptive_pool(x, 1, name="avgpool"), name="flatten")
    return b.build(b.linear(x, 1000, name="fc"))


def mobilenet_v2(name: str = "mobilenet_v2", width: float = 1, *, kernel: int = 3) -> Graph:
    """MobileNet v2; `kernel` is the window of the depthwise convolutions."""
    b = Builder(name, "MobileNetV2")
    x = b.input("data", (1, 3, 224, 224))
    index = count()
    into = rounded(32 * width)
    with b.scope("features", "Sequential"):
        x = conv_norm(b, x, ConvNorm(into, 3, stride=2, activation="relu6"), str(next(index)))
        for expansion, channels, depth, stride in STAGES:
            out = rounded(channels * width)
            for m in range(depth):
                block = InvertedResidual(into * expansion, out, kernel, 1 if m else stride)
                with b.scope(str(next(index)), "InvertedResidual"):
                    y = _inverted(b, x, into, block)
                    x = b.add(x, y, name="add") if block.stride == 1 and into == out else y
                into = out
        last = rounded(1280 * max(1, width))
        x = conv_norm(b, x, ConvNorm(last, 1, activation="relu6"), str(next(index)))
    x = averaged(b, x)
    with b.scope("classifier", "Sequential"):
        x = b.linear(b.dropout(x, 0.2, name="0"), 1000, name="1")
    return b.build(x)


def _inverted(b: Builder, x: str, into: int, block: InvertedResidual) -> str:
    wide = block.wide
    index = map(str, count())
    with b.scope("conv", "Sequential"):
        if wide != into:
            x = conv_norm(b, x, ConvNorm(wide, 1, activation="relu6"), next(index))
        depthwise = ConvNorm(wide, block.kernel, block.stride, groups=wide, activation="relu6")
        x = conv_norm(b, x, depthwise, next(index))
        x = b.conv(x, block.out, 1, bias=False, name=next(index))
        return b.batch_norm(x, name=next(index))


def mobilenet_v3(name: str) -> Graph:
    """The MobileNet v3 of that name."""
    return network_v3(name, *TABLES[name])


def network_v3(
    name: str, blocks: tuple[InvertedBottleneck, ...], last: int, width: float = 1
) -> Graph:
    """A MobileNet v3 of these blocks, `last` being the features before the classes."""
    b = Builder(name, "MobileNetV3")
    x = b.input("data", (1, 3, 224, 224))
    into = rounded(16 * width)
    with b.scope("features", "Sequential"):
        x = conv_norm(b, x, ConvNorm(into, 3, stride=2, activation=HS, norm=NORM), "0")
        for n, block in enumerate(blocks, 1):
            block = block._replace(wide=rounded(block.wide * width), out=rounded(block.out * width))
            with b.scope(str(n), "InvertedResidual"):
                y = _bottleneck(b, x, into, block)
                x = b.add(y, x, name="add") if block.stride == 1 and into == block.out else y
            into = block.out
        x = conv_norm(b, x, ConvNorm(6 * into, 1, activation=HS, norm=NORM), str(len(blocks) + 1))
    x = b.flatten(b.global_pool(x, name="avgpool"), name="flatten")
    with b.scope("classifier", "Sequential"):
        x = b.linear(x, rounded(last * width), name="0")
        x = b.activation(HS, x, in_place=True, name="1")
        x = b.linear(b.dropout(x, 0.2, in_place=True, name="2"), 1000, name="3")
    return b.build(x)


def _bottleneck(b: Builder, x: str, into: int, block: InvertedBottleneck) -> str:
    act, wide = block.activation, block.wide
    index = map(str, count())
    with b.scope("block", "Sequential"):
        if wide != into:
            x = conv_norm(b, x, ConvNorm(wide, 1, activation=act, norm=NORM), next(index))
        depthwise = ConvNorm(wide, block.kernel, block.stride, wide, act, NORM)
        x = conv_norm(b, x, depthwise, next(index))
        if block.excited:
            excite = SqueezeExcite(wide, rounded(wide // 4), outer="hard_sigmoid")
            x = squeeze_excite(b, x, excite, next(index))
        return conv_norm(b, x, ConvNorm(block.out, 1, norm=NORM), next(index))
