"""MNASNet of Tan and others 2018, the B1 form without squeeze and excitation, as torchvision's."""

from __future__ import annotations

from itertools import count

from layerscope.builder import Builder
from layerscope.graph.attributes import BatchNorm
from layerscope.graph.types import Graph
from layerscope.zoo.blocks import batch_norm, rounded

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
        x = _layer(b, x, index, stem, 3, stride=2)
        x = _layer(b, x, index, stem, 3, groups=stem)
        x = _layer(b, x, index, into, 1, rectified=False)
        for channels, kernel, stride, expansion, depth in stages:
            out = rounded(channels * width)
            with b.scope(str(next(index)), "Sequential"):
                for m in range(depth):
                    step = 1 if m else stride
                    with b.scope(str(m), "_InvertedResidual"):
                        y = _inverted(b, x, into * expansion, out, kernel, step)
                        x = b.add(y, x, name="add") if into == out and step == 1 else y
                    into = out
        x = _layer(b, x, index, 1280, 1)
    x = b.reduce("mean", x, (2, 3), name="mean")
    with b.scope("classifier", "Sequential"):
        x = b.linear(b.dropout(x, 0.2, in_place=True, name="0"), 1000, name="1")
    return b.build(x)


def _inverted(b: Builder, x: str, wide: int, out: int, kernel: int, stride: int) -> str:
    index = count()
    with b.scope("layers", "Sequential"):
        x = _layer(b, x, index, wide, 1)
        x = _layer(b, x, index, wide, kernel, stride=stride, groups=wide)
        return _layer(b, x, index, out, 1, rectified=False)


def _layer(
    b: Builder,
    x: str,
    index: count[int],
    channels: int,
    kernel: int,
    *,
    stride: int = 1,
    groups: int = 1,
    rectified: bool = True,
) -> str:
    x = b.conv(
        x,
        channels,
        kernel,
        stride=stride,
        padding=kernel // 2,
        groups=groups,
        bias=False,
        name=str(next(index)),
    )
    x = batch_norm(b, x, NORM, str(next(index)))
    return b.relu(x, in_place=True, name=str(next(index))) if rectified else x
