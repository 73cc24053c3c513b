"""VGG of Simonyan and Zisserman 2014 as torchvision has it, with or without batch norm."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from layerscope.builder import Builder
from layerscope.graph.types import Graph

Stages = Sequence[Sequence[int]]  # the kernel of every convolution, stage by stage

WIDTHS = (64, 128, 256, 512, 512)
A: Stages = ((3,), (3,), (3, 3), (3, 3), (3, 3))
B: Stages = ((3, 3), (3, 3), (3, 3), (3, 3), (3, 3))
D: Stages = ((3, 3), (3, 3), (3, 3, 3), (3, 3, 3), (3, 3, 3))
E: Stages = ((3, 3), (3, 3), (3, 3, 3, 3), (3, 3, 3, 3), (3, 3, 3, 3))


def vgg11() -> Graph:
    """VGG-11."""
    return network("vgg11", A)


def vgg13() -> Graph:
    """VGG-13."""
    return network("vgg13", B)


def vgg16() -> Graph:
    """VGG-16."""
    return network("vgg16", D)


def vgg19() -> Graph:
    """VGG-19."""
    return network("vgg19", E)


def vgg11_bn() -> Graph:
    """VGG-11 with batch norm."""
    return network("vgg11_bn", A, batch_norm=True)


def vgg13_bn() -> Graph:
    """VGG-13 with batch norm."""
    return network("vgg13_bn", B, batch_norm=True)


def vgg16_bn() -> Graph:
    """VGG-16 with batch norm."""
    return network("vgg16_bn", D, batch_norm=True)


def vgg19_bn() -> Graph:
    """VGG-19 with batch norm."""
    return network("vgg19_bn", E, batch_norm=True)


def network(name: str, stages: Stages, *, batch_norm: bool = False) -> Graph:
    """A VGG with windows of these sizes, each padded to keep the size of its input."""
    b = Builder(name, "VGG")
    x = b.input("data", (1, 3, 224, 224))
    index = count()
    with b.scope("features", "Sequential"):
        for width, kernels in zip(WIDTHS, stages, strict=True):
            for kernel in kernels:
                x = b.conv(x, width, kernel, padding=kernel // 2, name=str(next(index)))
                if batch_norm:
                    x = b.batch_norm(x, name=str(next(index)))
                x = b.relu(x, in_place=True, name=str(next(index)))
            x = b.max_pool(x, 2, name=str(next(index)))
    x = b.flatten(b.adaptive_pool(x, 7, name="avgpool"), name="flatten")
    with b.scope("classifier", "Sequential"):
        x = b.relu(b.linear(x, 4096, name="0"), in_place=True, name="1")
        x = b.linear(b.dropout(x, name="2"), 4096, name="3")
        x = b.dropout(b.relu(x, in_place=True, name="4"), name="5")
        x = b.linear(x, 1000, name="6")
    return b.build(x)
