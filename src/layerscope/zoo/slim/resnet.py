"""ResNets of He and others as TF-Slim has them: bottlenecks, stride in the last unit of a block.

Version 1 normalises after convolutions, version 2 (2016) before them. Windows with a stride have
equal padding on both sides, so that blocks stay aligned whatever the size of the input; only the
first pool has TensorFlow's SAME.
"""

from __future__ import annotations

from layerscope.builder import Builder
from layerscope.graph.attributes import BatchNorm
from layerscope.graph.types import Graph
from layerscope.zoo.slim.layers import SAME, VALID, Style, conv, norm, pool

BLOCKS = ((64, 2), (128, 2), (256, 2), (512, 1))  # channels, stride of the last unit
UNITS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3)}
EXPANSION = 4

NORM = BatchNorm()
NORMED = Style(NORM)
LINEAR = Style(NORM, "")
BARE = Style(None, "")


def resnet(version: int, depth: int) -> Graph:
    """ResNet on 224x224, version 1 or 2; its end points are named under resnet_v…/."""
    name = f"resnet_v{version}_{depth}"
    b = Builder(f"{name}-slim", separator="/")
    x = b.input("data", (1, 3, 224, 224))
    with b.scope(name):
        x = conv(b, x, (64, 7), "conv1", NORMED if version == 1 else BARE, stride=2, padding=3)
        x = pool(b, x, "max", "pool1", stride=2)
        for n, ((width, stride), units) in enumerate(zip(BLOCKS, UNITS[depth], strict=True), 1):
            with b.scope(f"block{n}"):
                for m in range(1, units):
                    with b.scope(f"unit_{m}"):
                        x = _joined(b, version, _unit(b, x, version, width, 1, projected=m == 1))
                with b.scope(f"unit_{units}"):
                    ends = _unit(b, x, version, width, stride, projected=False)
            x = _joined(b, version, ends, f"block{n}")
        if version == 2:
            x = b.relu(norm(b, x, NORM, "postnorm/BatchNorm"), name="postnorm")
        x = conv(b, b.global_pool(x, name="pool5"), (1000, 1), "logits", BARE)
        x = b.flatten(x, name="SpatialSqueeze")
    return b.build(x)


def _unit(
    b: Builder, x: str, version: int, width: int, stride: int, *, projected: bool
) -> tuple[str, str]:
    """A bottleneck and its shortcut, not yet added."""
    ready, style = x, LINEAR
    if version == 2:
        ready, style = b.relu(norm(b, x, NORM, "preact/BatchNorm"), name="preact"), BARE
    wide = width * EXPANSION
    shortcut = x
    if projected:
        shortcut = conv(b, ready, (wide, 1), "shortcut", style, stride=stride)
    elif stride > 1:
        shortcut = pool(b, x, "max", "shortcut", kernel=1, stride=stride, padding=VALID)
    y = conv(b, ready, (width, 1), "conv1", NORMED)
    padding = SAME if stride == 1 else 1
    y = conv(b, y, (width, 3), "conv2", NORMED, stride=stride, padding=padding)
    return shortcut, conv(b, y, (wide, 1), "conv3", style)


def _joined(b: Builder, version: int, ends: tuple[str, str], block: str = "") -> str:
    """The sum, rectified in version 1; that of a block's last unit bears the block's name."""
    if version == 2:
        return b.add(*ends, name=block or "add")
    total = b.add(*ends, name=f"{block}/add" if block else "add")
    return b.relu(total, name=block or "Relu")
