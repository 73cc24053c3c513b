"""AlexNet as torchvision and as Caffe have it, and ZFNet, which keeps its outline.

ZFNet is that of Zeiler and Fergus 2013. The paper draws maps of 110, 55, 26, 13, 13, 13, 13 and 6
without telling the padding: one pixel around conv1 and conv3 to conv5, and pools that keep partial
windows, give exactly these. It normalises after pooling by constants it leaves out: here Caffe's.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from layerscope.builder import Builder
from layerscope.graph.types import Graph

Convs = Sequence[tuple[int, int, int, int, int]]  # channels, kernel, stride, padding, groups

TORCHVISION: Convs = (
    (64, 11, 4, 2, 1),
    (192, 5, 1, 2, 1),
    (384, 3, 1, 1, 1),
    (256, 3, 1, 1, 1),
    (256, 3, 1, 1, 1),
)
CAFFE: Convs = (
    (96, 11, 4, 0, 1),
    (256, 5, 1, 2, 2),
    (384, 3, 1, 1, 1),
    (384, 3, 1, 1, 2),
    (256, 3, 1, 1, 2),
)
ZEILER: Convs = (
    (96, 7, 2, 1, 1),
    (256, 5, 2, 0, 1),
    (384, 3, 1, 1, 1),
    (384, 3, 1, 1, 1),
    (256, 3, 1, 1, 1),
)
POOLED = (1, 2, 5)
NORMALISED = (1, 2)


def alexnet() -> Graph:
    """AlexNet of torchvision."""
    return one_tower("alexnet", TORCHVISION)


def alexnet_caffe() -> Graph:
    """AlexNet of Caffe, in its deployed form."""
    return classic("alexnet-caffe", CAFFE, size=227)


def zfnet() -> Graph:
    """ZFNet as the paper draws it."""
    return classic("zfnet", ZEILER, size=224, norm_first=False)


def one_tower(name: str, convs: Convs) -> Graph:
    """Torchvision's outline with these convolutions."""
    b = Builder(name, "AlexNet")
    x = b.input("data", (1, 3, 224, 224))
    index = count()
    with b.scope("features", "Sequential"):
        for n, (channels, kernel, stride, padding, groups) in enumerate(convs, 1):
            x = b.conv(
                x,
                channels,
                kernel,
                stride=stride,
                padding=padding,
                groups=groups,
                name=str(next(index)),
            )
            x = b.relu(x, in_place=True, name=str(next(index)))
            if n in POOLED:
                x = b.max_pool(x, 3, stride=2, name=str(next(index)))
    x = b.flatten(b.adaptive_pool(x, 6, name="avgpool"), name="flatten")
    with b.scope("classifier", "Sequential"):
        x = b.linear(b.dropout(x, name="0"), 4096, name="1")
        x = b.dropout(b.relu(x, in_place=True, name="2"), name="3")
        x = b.relu(b.linear(x, 4096, name="4"), in_place=True, name="5")
        x = b.linear(x, 1000, name="6")
    return b.build(x)


def classic(name: str, convs: Convs, *, size: int, norm_first: bool = True) -> Graph:
    """Caffe's outline with these convolutions, normalised before or after pooling."""
    b = Builder(name, separator="/")
    x = b.input("data", (1, 3, size, size))
    for n, (channels, kernel, stride, padding, groups) in enumerate(convs, 1):
        x = b.conv(
            x, channels, kernel, stride=stride, padding=padding, groups=groups, name=f"conv{n}"
        )
        x = b.relu(x, in_place=True, name=f"relu{n}")
        if n in NORMALISED and norm_first:
            x = b.lrn(x, 5, name=f"norm{n}")
        if n in POOLED:
            x = b.max_pool(x, 3, stride=2, rounding="caffe", name=f"pool{n}")
        if n in NORMALISED and not norm_first:
            x = b.lrn(x, 5, name=f"norm{n}")
    for n in (6, 7):
        x = b.linear(x, 4096, flatten=True, name=f"fc{n}")
        x = b.dropout(b.relu(x, in_place=True, name=f"relu{n}"), in_place=True, name=f"drop{n}")
    x = b.linear(x, 1000, flatten=True, name="fc8")
    return b.build(b.softmax(x, name="prob"))
