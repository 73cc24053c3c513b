"""What TF-Slim makes of one call: a convolution with its norm and activation, the final logits."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from layerscope.builder import Builder
from layerscope.builder.assembly import Sizes
from layerscope.graph.attributes import BatchNorm

SAME = "same_upper"
VALID = 0


class Style(Struct, frozen=True):
    """What follows a convolution: the norm, none for a bias instead, and the activation."""

    norm: BatchNorm | None = None
    activation: str = "relu"


class SlimConv(Struct, frozen=True):
    """The window of a convolution."""

    channels: int
    kernel: Sizes
    stride: int = 1
    padding: str | int = SAME
    groups: int = 1


class SlimPool(Struct, frozen=True):
    """The window of a pool, and what it takes of it."""

    kind: Literal["max", "avg"]
    kernel: int = 3
    stride: int = 1
    padding: str | int = SAME


def conv(b: Builder, x: str, layer: SlimConv, name: str, style: Style) -> str:
    """A convolution as slim.conv2d adds it; the last of its nodes bears the name."""
    last = not (style.norm or style.activation)
    x = b.conv(
        x,
        layer.channels,
        layer.kernel,
        stride=layer.stride,
        padding=layer.padding,
        groups=layer.groups,
        bias=style.norm is None,
        name=name if last else f"{name}/Conv2D",
    )
    if style.norm:
        x = norm(b, x, style.norm, f"{name}/BatchNorm" if style.activation else name)
    if style.activation:
        x = b.activation(style.activation, x, name=name)
    return x


def norm(b: Builder, x: str, attributes: BatchNorm, name: str) -> str:
    """Batch norm with these attributes."""
    return b.add_node("batch_norm", (x,), attributes, name=name)[0]


def pool(b: Builder, x: str, window: SlimPool, name: str) -> str:
    """A pool; averages leave padding out, as TensorFlow's do."""
    kernel, stride, padding = window.kernel, window.stride, window.padding
    if window.kind == "max":
        return b.max_pool(x, kernel, stride=stride, padding=padding, name=name)
    return b.avg_pool(x, kernel, stride=stride, padding=padding, count_include_pad=False, name=name)


def logits(b: Builder, x: str, classes: int, keep: float) -> str:
    """The head of Inception and MobileNet: the mean of all positions, and a 1x1 convolution."""
    with b.scope("Logits"):
        x = b.dropout(b.global_pool(x, name="AvgPool_1a"), 1 - keep, name="Dropout_1b")
        x = conv(b, x, SlimConv(classes, 1), "Conv2d_1c_1x1", Style(activation=""))
        return b.flatten(x, name="SpatialSqueeze")
