"""MobileNet v1 of Howard and others 2017 as TF-Slim has it, at any width."""

from __future__ import annotations

from fractions import Fraction

from layerscope.builder import Builder
from layerscope.graph.attributes import BatchNorm
from layerscope.graph.types import Graph
from layerscope.zoo.slim.layers import SlimConv, Style, conv, logits

STEM = 32
# channels and stride of each pair of a depthwise and a pointwise convolution
PAIRS = (
    (64, 1),
    (128, 2), (128, 1),
    (256, 2), (256, 1),
    (512, 2), (512, 1), (512, 1), (512, 1), (512, 1), (512, 1),
    (1024, 2), (1024, 1),
)  # fmt: skip
LEAST = 8  # channels, however narrow
STYLE = Style(BatchNorm(eps=0.001), "relu6")


def mobilenet_v1(name: str, hundredths: int) -> Graph:
    """MobileNet v1 on 224x224 with so many hundredths of its channels."""
    b = Builder(name, separator="/")
    x = b.input("data", (1, 3, 224, 224))
    width = Fraction(hundredths, 100)
    channels = _narrow(STEM, width)
    x = conv(b, x, SlimConv(channels, 3, stride=2), "Conv2d_0", STYLE)
    for n, (full, stride) in enumerate(PAIRS, 1):
        depthwise = SlimConv(channels, 3, stride=stride, groups=channels)
        x = conv(b, x, depthwise, f"Conv2d_{n}_depthwise", STYLE)
        channels = _narrow(full, width)
        x = conv(b, x, SlimConv(channels, 1), f"Conv2d_{n}_pointwise", STYLE)
    return b.build(logits(b, x, 1000, keep=0.999))


def _narrow(channels: int, width: Fraction) -> int:
    return max(int(channels * width), LEAST)
