"""Inception v3 of Szegedy and others 2015 as torchvision has it, without the training head."""

from __future__ import annotations

from typing import NamedTuple

from layerscope.builder import Builder
from layerscope.graph.attributes import Pool
from layerscope.graph.types import Graph

Kernel = tuple[int, int]


class BranchConv(NamedTuple):
    """A convolution with batch norm and ReLU; one that moves by two does not pad."""

    name: str
    channels: int
    kernel: Kernel
    stride: int = 1


Branch = tuple[BranchConv, ...]


class Mixed(NamedTuple):
    """A block whose branches are joined; where `fork` is set, the last two steps go side by side.

    The last branch is a projection of the averages around each position, or with `pooled` 0 the
    maxima of windows that move by two.
    """

    module: str
    branches: tuple[Branch, ...]
    pooled: int
    fork: bool = False


POINT, ROW, COLUMN = (1, 1), (1, 7), (7, 1)


def _a(pooled: int, *, large: int = 5) -> Mixed:
    return Mixed(
        "InceptionA",
        (
            (BranchConv("branch1x1", 64, POINT),),
            (BranchConv("branch5x5_1", 48, POINT), BranchConv("branch5x5_2", 64, (large, large))),
            (
                BranchConv("branch3x3dbl_1", 64, POINT),
                BranchConv("branch3x3dbl_2", 96, (3, 3)),
                BranchConv("branch3x3dbl_3", 96, (3, 3)),
            ),
        ),
        pooled,
    )


def _c(width: int) -> Mixed:
    return Mixed(
        "InceptionC",
        (
            (BranchConv("branch1x1", 192, POINT),),
            (
                BranchConv("branch7x7_1", width, POINT),
                BranchConv("branch7x7_2", width, ROW),
                BranchConv("branch7x7_3", 192, COLUMN),
            ),
            (
                BranchConv("branch7x7dbl_1", width, POINT),
                BranchConv("branch7x7dbl_2", width, COLUMN),
                BranchConv("branch7x7dbl_3", width, ROW),
                BranchConv("branch7x7dbl_4", width, COLUMN),
                BranchConv("branch7x7dbl_5", 192, ROW),
            ),
        ),
        192,
    )


B = Mixed(
    "InceptionB",
    (
        (BranchConv("branch3x3", 384, (3, 3), 2),),
        (
            BranchConv("branch3x3dbl_1", 64, POINT),
            BranchConv("branch3x3dbl_2", 96, (3, 3)),
            BranchConv("branch3x3dbl_3", 96, (3, 3), 2),
        ),
    ),
    0,
)
D = Mixed(
    "InceptionD",
    (
        (BranchConv("branch3x3_1", 192, POINT), BranchConv("branch3x3_2", 320, (3, 3), 2)),
        (
            BranchConv("branch7x7x3_1", 192, POINT),
            BranchConv("branch7x7x3_2", 192, ROW),
            BranchConv("branch7x7x3_3", 192, COLUMN),
            BranchConv("branch7x7x3_4", 192, (3, 3), 2),
        ),
    ),
    0,
)
E = Mixed(
    "InceptionE",
    (
        (BranchConv("branch1x1", 320, POINT),),
        (
            BranchConv("branch3x3_1", 384, POINT),
            BranchConv("branch3x3_2a", 384, (1, 3)),
            BranchConv("branch3x3_2b", 384, (3, 1)),
        ),
        (
            BranchConv("branch3x3dbl_1", 448, POINT),
            BranchConv("branch3x3dbl_2", 384, (3, 3)),
            BranchConv("branch3x3dbl_3a", 384, (1, 3)),
            BranchConv("branch3x3dbl_3b", 384, (3, 1)),
        ),
    ),
    192,
    fork=True,
)


def inception_v3(*, large: int = 5) -> Graph:
    """Inception v3; `large` is the window of the 5x5 branches in its first three blocks."""
    blocks = {
        "5b": _a(32, large=large),
        "5c": _a(64, large=large),
        "5d": _a(64, large=large),
        "6a": B,
        "6b": _c(128),
        "6c": _c(160),
        "6d": _c(160),
        "6e": _c(192),
        "7a": D,
        "7b": E,
        "7c": E,
    }
    b = Builder("inception_v3", "Inception3")
    x = b.input("data", (1, 3, 299, 299))
    x = _basic(b, x, BranchConv("Conv2d_1a_3x3", 32, (3, 3), 2), padded=False)
    x = _basic(b, x, BranchConv("Conv2d_2a_3x3", 32, (3, 3)), padded=False)
    x = _basic(b, x, BranchConv("Conv2d_2b_3x3", 64, (3, 3)))
    x = b.max_pool(x, 3, stride=2, name="maxpool1")
    x = _basic(b, x, BranchConv("Conv2d_3b_1x1", 80, POINT))
    x = _basic(b, x, BranchConv("Conv2d_4a_3x3", 192, (3, 3)), padded=False)
    x = b.max_pool(x, 3, stride=2, name="maxpool2")
    for name, mixed in blocks.items():
        with b.scope(f"Mixed_{name}", mixed.module):
            x = _mixed(b, x, mixed)
    x = b.dropout(b.adaptive_pool(x, 1, name="avgpool"), name="dropout")
    return b.build(b.linear(b.flatten(x, name="flatten"), 1000, name="fc"))


def _mixed(b: Builder, x: str, mixed: Mixed) -> str:
    outputs = []
    for steps in mixed.branches:
        forked = mixed.fork and len(steps) > 1
        y = x
        for step in steps[:-2] if forked else steps:
            y = _basic(b, y, step)
        if forked:
            name = steps[0].name.replace("_1", "_cat")
            y = b.concat(*(_basic(b, y, step) for step in steps[-2:]), name=name)
        outputs.append(y)
    if mixed.pooled:
        window = Pool(b.window(3, 1, 1))
        (y,) = b.add_node("avg_pool", (x,), window, name="avg_pool2d", module=False)
        y = _basic(b, y, BranchConv("branch_pool", mixed.pooled, POINT))
    else:
        window = Pool(b.window(3, 2))
        (y,) = b.add_node("max_pool", (x,), window, name="max_pool2d", module=False)
    return b.concat(*outputs, y, name="cat")


def _basic(b: Builder, x: str, step: BranchConv, *, padded: bool = True) -> str:
    high, wide = step.kernel
    padding = (high // 2, wide // 2) if padded and step.stride == 1 else (0, 0)
    with b.scope(step.name, "BasicConv2d"):
        x = b.conv(
            x,
            step.channels,
            step.kernel,
            stride=step.stride,
            padding=padding,
            bias=False,
            name="conv",
        )
        x = b.batch_norm(x, eps=0.001, name="bn")
        return b.relu(x, in_place=True, name="relu", module=False)
