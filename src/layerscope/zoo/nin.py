"""Network in Network of Lin, Chen and Yan 2013 for ImageNet, layers named as in the Caffe files.

`nin` is the authors' file on its 224x224 crop, `nin-nopad` Boda's variant on 227x227, where no
convolution pads and pool2 moves by one. Both end with the average over the last maps, which are the
class scores: the files have a softmax only inside the training loss.
"""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.builder import Builder
from layerscope.graph.types import Graph

# convolution, its ReLU, channels, kernel, stride, padding
Row = tuple[str, str, int, int, int, int]

CONVS: tuple[Row, ...] = (
    ("conv1", "relu0", 96, 11, 4, 0),
    ("cccp1", "relu1", 96, 1, 1, 0),
    ("cccp2", "relu2", 96, 1, 1, 0),
    ("conv2", "relu3", 256, 5, 1, 2),
    ("cccp3", "relu5", 256, 1, 1, 0),
    ("cccp4", "relu6", 256, 1, 1, 0),
    ("conv3", "relu7", 384, 3, 1, 1),
    ("cccp5", "relu8", 384, 1, 1, 0),
    ("cccp6", "relu9", 384, 1, 1, 0),
    ("conv4-1024", "relu10", 1024, 3, 1, 1),
    ("cccp7-1024", "relu11", 1024, 1, 1, 0),
    ("cccp8-1024", "relu12", 1000, 1, 1, 0),
)


def nin() -> Graph:
    """Network in Network with padded convolutions."""
    return network("nin", CONVS, size=224, pool2_stride=2, last=6)


def nin_nopad() -> Graph:
    """Network in Network without padding."""
    return network("nin-nopad", unpadded(CONVS), size=227, pool2_stride=1, last=7)


def unpadded(convs: Sequence[Row]) -> tuple[Row, ...]:
    """The same convolutions with no padding."""
    return tuple((*row[:5], 0) for row in convs)


def network(name: str, convs: Sequence[Row], *, size: int, pool2_stride: int, last: int) -> Graph:
    """Network in Network with these convolutions; `last` is the window of the final average."""
    pools = {"cccp2": ("pool0", 2), "cccp4": ("pool2", pool2_stride), "cccp6": ("pool3", 2)}
    b = Builder(name, separator="/")
    x = b.input("data", (1, 3, size, size))
    for conv, relu, channels, kernel, stride, padding in convs:
        x = b.conv(x, channels, kernel, stride=stride, padding=padding, name=conv)
        x = b.relu(x, in_place=True, name=relu)
        if conv in pools:
            pool, step = pools[conv]
            x = b.max_pool(x, 3, stride=step, rounding="caffe", name=pool)
        if conv == "cccp6":
            x = b.dropout(x, in_place=True, name="drop")
    return b.build(b.avg_pool(x, last, stride=1, rounding="caffe", name="pool4"))
