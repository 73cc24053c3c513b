"""ResNet of He, Zhang, Ren and Sun 2015 as torchvision has it, ResNet-50 also as in the paper.

ResNeXt of Xie and others 2016 groups the 3x3 convolutions, wide ResNet of Zagoruyko and Komodakis
2016 widens them.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from layerscope.builder import Builder
from layerscope.graph.types import Graph


class ResidualBlock(Struct, frozen=True):
    """A residual block: the kernels of its convolutions, and which of them takes the stride."""

    module: str  # class name
    order: tuple[str, ...]  # in which torchvision declares its parts
    kernels: tuple[int, ...]
    strided: int
    expansion: int  # of the channels in its last convolution
    groups: int = 1
    per_group: int = 64  # channels in each of them where the width is 64


BASIC = ResidualBlock(
    "BasicBlock", ("conv1", "bn1", "relu", "conv2", "bn2", "downsample"), (3, 3), 0, 1
)
BOTTLENECK = ResidualBlock(
    "Bottleneck",
    ("conv1", "bn1", "conv2", "bn2", "conv3", "bn3", "relu", "downsample"),
    (1, 3, 1),
    1,
    4,
)
WIDTHS = (64, 128, 256, 512)


def resnet18() -> Graph:
    """ResNet-18."""
    return network("resnet18", BASIC, (2, 2, 2, 2))


def resnet34() -> Graph:
    """ResNet-34."""
    return network("resnet34", BASIC, (3, 4, 6, 3))


def resnet50() -> Graph:
    """ResNet-50."""
    return network("resnet50", BOTTLENECK, (3, 4, 6, 3))


def resnet101() -> Graph:
    """ResNet-101."""
    return network("resnet101", BOTTLENECK, (3, 4, 23, 3))


def resnet152() -> Graph:
    """ResNet-152."""
    return network("resnet152", BOTTLENECK, (3, 8, 36, 3))


def resnet50_v1() -> Graph:
    """ResNet-50 of the paper, where the first 1x1 of a block takes the stride."""
    return network("resnet50-v1", replace(BOTTLENECK, strided=0), (3, 4, 6, 3))


def resnext50_32x4d() -> Graph:
    """ResNeXt-50 with 32 groups of 4 channels."""
    return network("resnext50_32x4d", grouped(32, 4), (3, 4, 6, 3))


def resnext101_32x8d() -> Graph:
    """ResNeXt-101 with 32 groups of 8 channels."""
    return network("resnext101_32x8d", grouped(32, 8), (3, 4, 23, 3))


def wide_resnet50_2() -> Graph:
    """ResNet-50 with twice the channels inside its bottlenecks."""
    return network("wide_resnet50_2", grouped(1, 128), (3, 4, 6, 3))


def wide_resnet101_2() -> Graph:
    """ResNet-101 with twice the channels inside its bottlenecks."""
    return network("wide_resnet101_2", grouped(1, 128), (3, 4, 23, 3))


def grouped(groups: int, per_group: int) -> ResidualBlock:
    """A bottleneck with so many groups, and that many channels in each in the first layer."""
    return replace(BOTTLENECK, groups=groups, per_group=per_group)


def network(name: str, block: ResidualBlock, depths: tuple[int, ...], *, stem: int = 7) -> Graph:
    """A ResNet of so many blocks in each layer; `stem` is the window of the first convolution."""
    b = Builder(name, "ResNet")
    x = b.input("data", (1, 3, 224, 224))
    x = b.conv(x, 64, stem, stride=2, padding=stem // 2, bias=False, name="conv1")
    x = b.relu(b.batch_norm(x, name="bn1"), in_place=True, name="relu")
    x = b.max_pool(x, 3, stride=2, padding=1, name="maxpool")
    for n, (width, depth) in enumerate(zip(WIDTHS, depths, strict=True)):
        with b.scope(f"layer{n + 1}", "Sequential"):
            for m in range(depth):
                stride = 2 if n > 0 and m == 0 else 1
                projected = m == 0 and (n > 0 or block.expansion > 1)
                with b.scope(str(m), block.module, order=block.order):
                    y = _branch(b, x, block, width, stride)
                    if projected:
                        x = _projection(b, x, width * block.expansion, stride)
                    x = b.relu(b.add(y, x, name="add"), in_place=True, name="relu")
    x = b.flatten(b.adaptive_pool(x, 1, name="avgpool"), name="flatten")
    return b.build(b.linear(x, 1000, name="fc"))


def _branch(b: Builder, x: str, block: ResidualBlock, width: int, stride: int) -> str:
    """The convolutions of a block, before its shortcut is added."""
    wide = width * block.expansion
    width = width * block.per_group // 64 * block.groups
    last = len(block.kernels)
    for n, kernel in enumerate(block.kernels, 1):
        x = b.conv(
            x,
            wide if n == last else width,
            kernel,
            stride=stride if n == block.strided + 1 else 1,
            padding=kernel // 2,
            groups=block.groups if kernel > 1 else 1,
            bias=False,
            name=f"conv{n}",
        )
        x = b.batch_norm(x, name=f"bn{n}")
        if n < last:
            x = b.relu(x, in_place=True, name="relu")
    return x


def _projection(b: Builder, x: str, channels: int, stride: int) -> str:
    """A shortcut that changes the number of channels or the size."""
    with b.scope("downsample", "Sequential"):
        x = b.conv(x, channels, 1, stride=stride, bias=False, name="0")
        return b.batch_norm(x, name="1")
