"""MNASNet of Tan and others 2018, the B1 form without squeeze and excitation, as torchvision's."""

from __future__ import annotations

from itertools import count

from layerscope.builder import Builder
from layerscope.graph.attributes import BatchNorm
from layerscope.graph.types import Graph
from layerscope.zoo.blocks import ConvNorm, InvertedResidual, batch_norm, rounded

Stages = tuple[tuple[int, int, int, int, int], ...]  # channels, kernel, stride, expansion, depth

STAGES: Stages = (
    (24, 3, 2, 3, 3),
    (40, 5, 2, 3, 3),
    (80, 5, 2, 6, 3),
    (96, 3, 1, 6, 2),
    (192, 5, 2, 6, 4),
    (320, 3, 1, 6, 1),
)
NORM = BatchNorm(momentum=1 - 0.9997)  # TensorFlow's 0.9997


def network(name: str, width: float, stages: Stages = STAGES) -> Graph:
    """A MNASNet with its channels scaled by `width`."""
    b = Builder(name, "MNASNet")
    x = b.input("data", (1, 3, 224, 224))
    index = count()
    stem, into = rounded(32 * width), rounded(16 * width)
    with b.scope("layers", "Sequential"):
        x = _layer(b, x, index, ConvNorm(stem, 3, stride=2, activation="relu", norm=NORM))
        x = _layer(b, x, index, ConvNorm(stem, 3, groups=stem, activation="relu", norm=NORM))
        x = _layer(b, x, index, ConvNorm(into, 1, norm=NORM))
        for channels, kernel, stride, expansion, depth in stages:
            out = rounded(channels * width)
            with b.scope(str(next(index)), "Sequential"):
                for m in range(depth):
                    block = InvertedResidual(into * expansion, out, kernel, 1 if m else stride)
                    with b.scope(str(m), "_InvertedResidual"):
                        y = _inverted(b, x, block)
                        x = b.add(y, x, name="add") if into == out and block.stride == 1 else y
                    into = out
        x = _layer(b, x, index, ConvNorm(1280, 1, activation="relu", norm=NORM))
    x = b.reduce("mean", x, (2, 3), name="mean")
    with b.scope("classifier", "Sequential"):
        x = b.linear(b.dropout(x, 0.2, in_place=True, name="0"), 1000, name="1")
    return b.build(x)


def _inverted(b: Builder, x: str, block: InvertedResidual) -> str:
    index = count()
    wide = block.wide
    with b.scope("layers", "Sequential"):
        x = _layer(b, x, index, ConvNorm(wide, 1, activation="relu", norm=NORM))
        x = _layer(b, x, index, ConvNorm(wide, block.kernel, block.stride, wide, "relu", NORM))
        return _layer(b, x, index, ConvNorm(block.out, 1, norm=NORM))


def _layer(b: Builder, x: str, index: count[int], layer: ConvNorm) -> str:
    """Convolution, batch norm and ReLU as modules that are numbered by `index`."""
    x = b.conv(
        x, layer.channels, layer.kernel, stride=layer.stride, padding=layer.kernel // 2,
        groups=layer.groups, bias=False, name=str(next(index)),
    )  # fmt: skip
    x = batch_norm(b, x, layer.norm, str(next(index)))
    if not layer.activation:
        return x
    return b.activation(layer.activation, x, in_place=True, name=str(next(index)))
