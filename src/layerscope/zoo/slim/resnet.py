"""ResNets of He and others as TF-Slim has them: bottlenecks, stride in the last unit of a block.

Version 1 normalises after convolutions, version 2 (2016) before them. Windows with a stride have
equal padding on both sides, so that blocks stay aligned whatever the size of the input; only the
first pool has TensorFlow's SAME.
"""

from __future__ import annotations

from msgspec import Struct

from layerscope.builder import Builder
from layerscope.graph.attributes import BatchNorm
from layerscope.graph.types import Graph
from layerscope.zoo.slim.layers import SAME, VALID, SlimConv, SlimPool, Style, conv, norm, pool

BLOCKS = ((64, 2), (128, 2), (256, 2), (512, 1))  # channels, stride of the last unit
UNITS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3)}
EXPANSION = 4

NORM = BatchNorm()
NORMED = Style(NORM)
LINEAR = Style(NORM, "")
BARE = Style(None, "")


class BottleneckUnit(Struct, frozen=True):
    """A unit of a block; its output has EXPANSION times its width."""

    width: int
    stride: int = 1
    projected: bool = False  # whether a convolution is the shortcut


def resnet(version: int, depth: int) -> Graph:
    """ResNet on 224x224, version 1 or 2; its end points are named under resnet_v…/."""
    name = f"resnet_v{version}_{depth}"
    b = Builder(f"{name}-slim", separator="/")
    x = b.input("data", (1, 3, 224, 224))
    with b.scope(name):
        stem = SlimConv(64, 7, stride=2, padding=3)
        x = conv(b, x, stem, "conv1", NORMED if version == 1 else BARE)
        x = pool(b, x, SlimPool("max", stride=2), "pool1")
        for n, ((width, stride), units) in enumerate(zip(BLOCKS, UNITS[depth], strict=True), 1):
            with b.scope(f"block{n}"):
                for m in range(1, units):
                    unit = BottleneckUnit(width, projected=m == 1)
                    with b.scope(f"unit_{m}"):
                        x = _joined(b, version, _unit(b, x, version, unit))
                with b.scope(f"unit_{units}"):
                    ends = _unit(b, x, version, BottleneckUnit(width, stride))
            x = _joined(b, version, ends, f"block{n}")
        if version == 2:
            x = b.relu(norm(b, x, NORM, "postnorm/BatchNorm"), name="postnorm")
        x = conv(b, b.global_pool(x, name="pool5"), SlimConv(1000, 1), "logits", BARE)
        x = b.flatten(x, name="SpatialSqueeze")
    return b.build(x)


def _unit(b: Builder, x: str, version: int, unit: BottleneckUnit) -> tuple[str, str]:
    """A bottleneck and its shortcut, not yet added."""
    width, stride = unit.width, unit.stride
    ready, style = x, LINEAR
    if version == 2:
        ready, style = b.relu(norm(b, x, NORM, "preact/BatchNorm"), name="preact"), BARE
    wide = width * EXPANSION
    shortcut = x
    if unit.projected:
        shortcut = conv(b, ready, SlimConv(wide, 1, stride=stride), "shortcut", style)
    elif stride > 1:
        shortcut = pool(b, x, SlimPool("max", kernel=1, stride=stride, padding=VALID), "shortcut")
    y = conv(b, ready, SlimConv(width, 1), "conv1", NORMED)
    padding = SAME if stride == 1 else 1
    y = conv(b, y, SlimConv(width, 3, stride=stride, padding=padding), "conv2", NORMED)
    return shortcut, conv(b, y, SlimConv(wide, 1), "conv3", style)


def _joined(b: Builder, version: int, ends: tuple[str, str], block: str = "") -> str:
    """The sum, rectified in version 1; that of a block's last unit bears the block's name."""
    if version == 2:
        return b.add(*ends, name=block or "add")
    total = b.add(*ends, name=f"{block}/add" if block else "add")
    return b.relu(total, name=block or "Relu")
