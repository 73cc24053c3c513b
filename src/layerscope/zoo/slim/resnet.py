"""ResNets of He and others as TF-Slim has them: bottlenecks, stride in the last unit of a block.

Version 1 normalises after convolutions, version 2 (2016) before them. Windows with a stride have
equal padding on both sides, so that blocks stay aligned whatever the size of the input; only the
first pool has TensorFlow's SAME.
"""

from __future__ import annotations

from layerscope.graph.attributes import BatchNorm
from layerscope.graph.builder import Builder
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
        stem = NORMED if version == 1 else BARE
        x = conv(b, x, (64, 7), "conv1", stem, stride=2, padding=3)
        x = pool(b, x, "max", "pool1", stride=2)
        inputs = 64
        for n, ((width, stride), units) in enumerate(zip(BLOCKS, UNITS[depth], strict=True), 1):
            for m in range(1, units + 1):
                # the last unit's output is the block's, and bears its name
                unit = f"block{n}/unit_{m}"
                out = f"block{n}" if m == units else unit
                step = stride if m == units else 1
                make = _unit_v1 if version == 1 else _unit_v2
                x = make(b, x, (unit, out), width, step, projected=inputs != width * EXPANSION)
                inputs = width * EXPANSION
        if version == 2:
            x = b.relu(norm(b, x, NORM, "postnorm/BatchNorm"), name="postnorm")
        x = conv(b, b.global_pool(x, name="pool5"), (1000, 1), "logits", BARE)
        x = b.flatten(x, name="SpatialSqueeze")
    return b.build(x)


def _unit_v1(
    b: Builder, x: str, names: tuple[str, str], width: int, stride: int, *, projected: bool
) -> str:
    unit, out = names
    y = _narrow(b, x, unit, width, stride)
    y = conv(b, y, (width * EXPANSION, 1), f"{unit}/conv3", LINEAR)
    shortcut = _shortcut(b, x, x, unit, LINEAR if projected else None, width, stride)
    return b.relu(b.add(shortcut, y, name=f"{unit}/add"), name=out)


def _unit_v2(
    b: Builder, x: str, names: tuple[str, str], width: int, stride: int, *, projected: bool
) -> str:
    unit, out = names
    ready = b.relu(norm(b, x, NORM, f"{unit}/preact/BatchNorm"), name=f"{unit}/preact")
    y = _narrow(b, ready, unit, width, stride)
    y = conv(b, y, (width * EXPANSION, 1), f"{unit}/conv3", BARE)
    shortcut = _shortcut(b, x, ready, unit, BARE if projected else None, width, stride)
    return b.add(shortcut, y, name=out)


def _narrow(b: Builder, x: str, unit: str, width: int, stride: int) -> str:
    x = conv(b, x, (width, 1), f"{unit}/conv1", NORMED)
    padding = SAME if stride == 1 else 1
    return conv(b, x, (width, 3), f"{unit}/conv2", NORMED, stride=stride, padding=padding)


def _shortcut(
    b: Builder, x: str, ready: str, unit: str, style: Style | None, width: int, stride: int
) -> str:
    """The input itself, every other position of it, or with a style a projection."""
    name = f"{unit}/shortcut"
    if style:
        return conv(b, ready, (width * EXPANSION, 1), name, style, stride=stride)
    if stride == 1:
        return x
    return pool(b, x, "max", name, kernel=1, stride=stride, padding=VALID)
