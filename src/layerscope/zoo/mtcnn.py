"""The three networks of MTCNN, a face detection cascade by Zhang, Zhang, Li and Qiao 2016.

Windows are those of the authors' Caffe files, layer names and order those of the published Netscope
tables: O-Net's linear layers are fc5 and fc6 there, and its relu5 comes before drop5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layerscope.builder import Builder
from layerscope.graph.types import Graph

Convs = Sequence[tuple[int, int]]  # channels, kernel
Pools = Mapping[int, int]  # number of the convolution before -> kernel; the stride is always 2

PNET: Convs = ((10, 3), (16, 3), (32, 3))
RNET: Convs = ((28, 3), (48, 3), (64, 2))
ONET: Convs = ((32, 3), (64, 3), (64, 3), (128, 2))


def pnet(convs: Convs = PNET) -> Graph:
    """P-Net: face or not and box offsets at every position of an image, here one of 12x12."""
    b = Builder("mtcnn-pnet", separator="/")
    x = _trunk(b, b.input("data", (1, 3, 12, 12)), convs, {1: 2}, "PReLU")
    face = b.conv(x, 2, 1, name="conv4-1")
    box = b.conv(x, 4, 1, name="conv4-2")
    return b.build(box, b.softmax(face, name="prob1"))


def rnet(convs: Convs = RNET) -> Graph:
    """R-Net: face or not and box offsets of a 24x24 candidate."""
    b = Builder("mtcnn-rnet", separator="/")
    x = _trunk(b, b.input("data", (1, 3, 24, 24)), convs, {1: 3, 2: 3}, "prelu")
    x = b.prelu(b.linear(x, 128, flatten=True, name="conv4"), name="prelu4")
    face = b.linear(x, 2, flatten=True, name="conv5-1")
    box = b.linear(x, 4, flatten=True, name="conv5-2")
    return b.build(box, b.softmax(face, name="prob1"))


def onet(convs: Convs = ONET) -> Graph:
    """O-Net: face or not, box offsets and five points of a 48x48 candidate."""
    b = Builder("mtcnn-onet", separator="/")
    x = _trunk(b, b.input("data", (1, 3, 48, 48)), convs, {1: 3, 2: 3, 3: 2}, "relu")
    x = b.prelu(b.linear(x, 256, flatten=True, name="fc5"), name="relu5")
    x = b.dropout(x, 0.25, in_place=True, name="drop5")
    face = b.linear(x, 2, flatten=True, name="fc6-1")
    box = b.linear(x, 4, flatten=True, name="fc6-2")
    points = b.linear(x, 10, flatten=True, name="fc6-3")
    return b.build(box, points, b.softmax(face, name="prob1"))


def _trunk(b: Builder, x: str, convs: Convs, pools: Pools, slope: str) -> str:
    for n, (channels, kernel) in enumerate(convs, 1):
        x = b.prelu(b.conv(x, channels, kernel, name=f"conv{n}"), name=f"{slope}{n}")
        if n in pools:
            x = b.max_pool(x, pools[n], stride=2, rounding="caffe", name=f"pool{n}")
    return x
