"""Blocks that several torchvision networks share."""

from __future__ import annotations

from layerscope.builder import Builder
from layerscope.graph.attributes import AdaptivePool, BatchNorm

PLAIN = BatchNorm()


def rounded(channels: float, divisor: int = 8) -> int:
    """The nearest multiple of `divisor` that is at least 0.9 · `channels`."""
    nearest = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return nearest if nearest >= 0.9 * channels else nearest + divisor


def conv_norm(
    b: Builder,
    x: str,
    channels: int,
    kernel: int,
    name: str,
    *,
    stride: int = 1,
    groups: int = 1,
    activation: str = "",
    norm: BatchNorm = PLAIN,
    module: str = "Conv2dNormActivation",
) -> str:
    """Convolution padded to keep its size, batch norm, and an optional activation."""
    with b.scope(name, module):
        padding = kernel // 2
        x = b.conv(
            x, channels, kernel, stride=stride, padding=padding, groups=groups, bias=False, name="0"
        )
        x = batch_norm(b, x, norm, "1")
        return b.activation(activation, x, in_place=True, name="2") if activation else x


def batch_norm(b: Builder, x: str, norm: BatchNorm, name: str) -> str:
    """Batch norm with these attributes."""
    return b.add_node("batch_norm", (x,), norm, name=name)[0]


def squeeze_excite(
    b: Builder,
    x: str,
    channels: int,
    squeezed: int,
    name: str,
    *,
    inner: str = "relu",
    outer: str = "sigmoid",
    in_place: bool = False,
) -> str:
    """Squeeze and excitation of Hu and others 2017: channels weighted by global averages."""
    order = ("avgpool", "fc1", "fc2", "activation", "scale_activation")
    with b.scope(name, "SqueezeExcitation", order=order):
        scale = b.conv(b.global_pool(x, name="avgpool"), squeezed, 1, name="fc1")
        scale = b.activation(inner, scale, in_place=in_place, name="activation")
        scale = b.conv(scale, channels, 1, name="fc2")
        scale = b.activation(outer, scale, name="scale_activation")
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
