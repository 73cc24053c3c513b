"""Blocks that several torchvision networks share."""

from __future__ import annotations

from msgspec import Struct

from layerscope.builder import Builder
from layerscope.graph.attributes import AdaptivePool, BatchNorm

PLAIN = BatchNorm()


class ConvNorm(Struct, frozen=True):
    """A convolution padded to keep its size, batch norm, and an optional activation."""

    channels: int
    kernel: int
    stride: int = 1
    groups: int = 1
    activation: str = ""
    norm: BatchNorm = PLAIN


class InvertedResidual(Struct, frozen=True):
    """A block of MobileNet v2: expansion, depthwise convolution and projection."""

    wide: int  # channels between the 1x1 convolutions
    out: int
    kernel: int
    stride: int


class SqueezeExcite(Struct, frozen=True):
    """Channels weighted by global averages, through fewer channels in between."""

    channels: int
    squeezed: int
    inner: str = "relu"  # activation after the first convolution
    outer: str = "sigmoid"  # after the second
    in_place: bool = False  # of the inner activation


def rounded(channels: float, divisor: int = 8) -> int:
    """The nearest multiple of `divisor` that is at least 0.9 · `channels`."""
    nearest = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return nearest if nearest >= 0.9 * channels else nearest + divisor


def conv_norm(
    b: Builder, x: str, layer: ConvNorm, name: str, *, module: str = "Conv2dNormActivation"
) -> str:
    """Convolution, batch norm and activation as one module."""
    with b.scope(name, module):
        x = b.conv(
            x, layer.channels, layer.kernel, stride=layer.stride, padding=layer.kernel // 2,
            groups=layer.groups, bias=False, name="0",
        )  # fmt: skip
        x = batch_norm(b, x, layer.norm, "1")
        return b.activation(layer.activation, x, in_place=True, name="2") if layer.activation else x


def batch_norm(b: Builder, x: str, norm: BatchNorm, name: str) -> str:
    """Batch norm with these attributes."""
    return b.add_node("batch_norm", (x,), norm, name=name)[0]


def squeeze_excite(b: Builder, x: str, block: SqueezeExcite, name: str) -> str:
    """Squeeze and excitation of Hu and others 2017."""
    order = ("avgpool", "fc1", "fc2", "activation", "scale_activation")
    with b.scope(name, "SqueezeExcitation", order=order):
        scale = b.conv(b.global_pool(x, name="avgpool"), block.squeezed, 1, name="fc1")
        scale = b.activation(block.inner, scale, in_place=block.in_place, name="activation")
        scale = b.conv(scale, block.channels, 1, name="fc2")
        scale = b.activation(block.outer, scale, name="scale_activation")
        return b.mul(scale, x, name="mul")


def averaged(b: Builder, x: str) -> str:
    """The average over all positions by a function call, flattened."""
    pool = AdaptivePool((1, 1))
    (x,) = b.add_node("adaptive_avg_pool", (x,), pool, name="adaptive_avg_pool2d", module=False)
    return b.flatten(x, name="flatten")


def declare(b: Builder, name: str, kind: str) -> None:
    """Declare the class of a module that has no node of its own."""
    with b.scope(name, kind):
        pass


def residual(b: Builder, x: str, shortcut: str, drop: float) -> str:
    """Sum with a shortcut after stochastic depth, which is the identity at inference."""
    x = b.add_node("identity", (x,), name=stochastic_depth(b, drop))[0]
    return b.add(x, shortcut, name="add")


def stochastic_depth(b: Builder, drop: float) -> str:
    """The name of a module that drops a residual branch with this probability in training."""
    declare(b, "stochastic_depth", f"StochasticDepth(p={drop}, mode=row)")
    return "stochastic_depth"
