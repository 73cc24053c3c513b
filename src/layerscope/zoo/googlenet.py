"""GoogLeNet of Szegedy and others 2014 as torchvision and as Caffe have it, no training heads.

Torchvision's has batch norm and no biases, a 3x3 window where the paper has 5x5, a 2x2 window in
its last max pool and no local response norm. Caffe's is the BVLC deployment on 224x224, whose names
are kept to the letter.
"""

from __future__ import annotations

from msgspec import Struct

from layerscope.builder import Builder
from layerscope.graph.types import Graph

Widths = tuple[int, int, int, int, int, int]

# 1x1; reduction and 3x3; reduction and 5x5; projection after the pool
INCEPTIONS: dict[str, Widths] = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


class InceptionConv(Struct, frozen=True):
    """A convolution that is padded to keep its size where its stride is 1."""

    channels: int
    kernel: int
    stride: int = 1


def googlenet(*, large: int = 3) -> Graph:
    """GoogLeNet of torchvision; `large` is the window of the third branches, the paper's 5x5."""
    b = Builder("googlenet", "GoogLeNet")
    x = b.input("data", (1, 3, 224, 224))
    x = _basic(b, x, InceptionConv(64, 7, stride=2), "conv1")
    x = b.max_pool(x, 3, stride=2, rounding="torch", name="maxpool1")
    x = _basic(b, x, InceptionConv(64, 1), "conv2")
    x = _basic(b, x, InceptionConv(192, 3), "conv3")
    x = b.max_pool(x, 3, stride=2, rounding="torch", name="maxpool2")
    for name, widths in INCEPTIONS.items():
        with b.scope(f"inception{name}", "Inception"):
            x = _branches(b, x, widths, large)
        if name == "3b":
            x = b.max_pool(x, 3, stride=2, rounding="torch", name="maxpool3")
        if name == "4e":
            x = b.max_pool(x, 2, rounding="torch", name="maxpool4")
    x = b.flatten(b.adaptive_pool(x, 1, name="avgpool"), name="flatten")
    return b.build(b.linear(b.dropout(x, 0.2, name="dropout"), 1000, name="fc"))


def _branches(b: Builder, x: str, widths: Widths, large: int) -> str:
    one, reduce3, three, reduce5, five, projected = widths
    first = _basic(b, x, InceptionConv(one, 1), "branch1")
    with b.scope("branch2", "Sequential"):
        second = _basic(b, x, InceptionConv(reduce3, 1), "0")
        second = _basic(b, second, InceptionConv(three, 3), "1")
    with b.scope("branch3", "Sequential"):
        third = _basic(b, x, InceptionConv(reduce5, 1), "0")
        third = _basic(b, third, InceptionConv(five, large), "1")
    with b.scope("branch4", "Sequential"):
        fourth = b.max_pool(x, 3, stride=1, padding=1, rounding="torch", name="0")
        fourth = _basic(b, fourth, InceptionConv(projected, 1), "1")
    return b.concat(first, second, third, fourth, name="cat")


def _basic(b: Builder, x: str, conv: InceptionConv, name: str) -> str:
    """Convolution, batch norm and a ReLU that is a function call, no module."""
    with b.scope(name, "BasicConv2d"):
        x = b.conv(
            x, conv.channels, conv.kernel, stride=conv.stride, padding=conv.kernel // 2,
            bias=False, name="conv",
        )  # fmt: skip
        x = b.batch_norm(x, eps=0.001, name="bn")
        return b.relu(x, in_place=True, name="relu", module=False)


def googlenet_caffe(*, large: int = 5) -> Graph:
    """GoogLeNet of Caffe; `large` is the window of the layers called 5x5."""
    b = Builder("googlenet-caffe", separator="/")
    x = b.input("data", (1, 3, 224, 224))
    with b.scope("conv1"):
        x = _rectified(b, x, InceptionConv(64, 7, stride=2), "7x7_s2")
    with b.scope("pool1"):
        x = b.max_pool(x, 3, stride=2, rounding="caffe", name="3x3_s2")
        x = b.lrn(x, 5, name="norm1")
    with b.scope("conv2"):
        x = _rectified(b, x, InceptionConv(64, 1), "3x3_reduce")
        x = b.lrn(_rectified(b, x, InceptionConv(192, 3), "3x3"), 5, name="norm2")
    x = _halve(b, x, "pool2")
    for name, widths in INCEPTIONS.items():
        with b.scope(f"inception_{name}"):
            x = _caffe_branches(b, x, widths, large)
        if name == "3b":
            x = _halve(b, x, "pool3")
        if name == "4e":
            x = _halve(b, x, "pool4")
    with b.scope("pool5"):
        x = b.avg_pool(x, 7, stride=1, rounding="caffe", name="7x7_s1")
        x = b.dropout(x, 0.4, in_place=True, name="drop_7x7_s1")
    with b.scope("loss3"):
        x = b.linear(x, 1000, flatten=True, name="classifier")
    return b.build(b.softmax(x, name="prob"))


def _caffe_branches(b: Builder, x: str, widths: Widths, large: int) -> str:
    one, reduce3, three, reduce5, five, projected = widths
    first = _rectified(b, x, InceptionConv(one, 1), "1x1")
    second = _rectified(b, x, InceptionConv(reduce3, 1), "3x3_reduce")
    second = _rectified(b, second, InceptionConv(three, 3), "3x3")
    third = _rectified(b, x, InceptionConv(reduce5, 1), "5x5_reduce")
    third = _rectified(b, third, InceptionConv(five, large), "5x5")
    fourth = b.max_pool(x, 3, stride=1, padding=1, rounding="caffe", name="pool")
    fourth = _rectified(b, fourth, InceptionConv(projected, 1), "pool_proj")
    return b.concat(first, second, third, fourth, name="output")


def _rectified(b: Builder, x: str, conv: InceptionConv, name: str) -> str:
    padding = conv.kernel // 2
    x = b.conv(x, conv.channels, conv.kernel, stride=conv.stride, padding=padding, name=name)
    shown = name.removesuffix("_s2")
    return b.relu(x, in_place=True, name=f"relu_{shown}")


def _halve(b: Builder, x: str, name: str) -> str:
    with b.scope(name):
        return b.max_pool(x, 3, stride=2, rounding="caffe", name="3x3_s2")
