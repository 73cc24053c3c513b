"""ONNX models of normalization layers, scale and bias."""

from __future__ import annotations

import math

from layerscope.graph import attributes as at
from layerscope.graph.attributes import (
    GroupNorm,
    InstanceNorm,
    L2Norm,
    LayerNorm,
    LocalResponseNorm,
    RMSNorm,
)
from tests.brute.engine import NEWER, Model, Writer, along_axis


def batch_norm(m: Model) -> str:
    ones, noughts = m.numbers([1.0] * m.shape[1]), m.numbers([0.0] * m.shape[1])
    scale = "weight" if "weight" in m.params else ones
    bias = "bias" if "bias" in m.params else noughts
    eps = m.attributes.eps if m.attributes else 1e-5
    names = (m.x, scale, bias, "running_mean", "running_var")
    return m.node("BatchNormalization", *names, epsilon=eps)


def layer_norm(m: Model) -> str:
    a: LayerNorm = m.attributes or LayerNorm()
    if not a.variance:
        places = m.ints(*range(a.axis, len(m.shape)))
        return m.node("Sub", m.x, m.node("ReduceMean", m.x, places, keepdims=1))
    names = list(m.params)
    if not names:
        rest = m.shape[a.axis :]
        ones = m.numbers([1.0] * math.prod(rest))
        names = [m.node("Reshape", ones, m.ints(*rest))]
    return m.node("LayerNormalization", m.x, *names, axis=a.axis, epsilon=a.eps)


def group_norm(m: Model) -> str:
    a: GroupNorm = m.attributes
    names = list(m.params)
    if not names:
        names = [m.numbers([1.0] * m.shape[1]), m.numbers([0.0] * m.shape[1])]
    if a.groups == m.shape[1]:
        return m.node("InstanceNormalization", m.x, *names, epsilon=a.eps)
    return m.node("GroupNormalization", m.x, *names, num_groups=a.groups, epsilon=a.eps)


def lrn(m: Model) -> str:
    """By hand, Σ/n is an average pool of the squares that counts its padding.

    So it is within a channel; and across channels of even size, which onnxruntime's LRN refuses.
    """
    a: LocalResponseNorm = m.attributes
    if not a.within_channel and a.size % 2:
        return m.node("LRN", m.x, size=a.size, alpha=a.alpha, beta=a.beta, bias=a.k)
    before = (a.size - 1) // 2
    pads = (before, a.size - 1 - before)
    squares = m.node("Mul", m.x, m.x)
    if a.within_channel:
        mean = _average(m, squares, [a.size] * (len(m.shape) - 2), [pads] * (len(m.shape) - 2))
    else:
        batch, channels, *rest = m.shape
        column = m.node("Reshape", squares, m.ints(batch, 1, channels, math.prod(rest)))
        mean = _average(m, column, [a.size, 1], [pads, (0, 0)])
        mean = m.node("Reshape", mean, m.ints(*m.shape))
    scaled = m.node("Add", m.node("Mul", mean, m.number(a.alpha)), m.number(a.k))
    return m.node("Div", m.x, m.node("Pow", scaled, m.number(a.beta)))


def _average(m: Model, x: str, kernel: list[int], pads: list[tuple[int, int]]) -> str:
    begins, ends = zip(*pads, strict=True)
    told = {"kernel_shape": kernel, "pads": [*begins, *ends], "count_include_pad": 1}
    return m.node("AveragePool", x, **told)


def l2_norm(m: Model) -> str:
    a: L2Norm = m.attributes or L2Norm()
    if len(a.axes) == 1:
        y = m.node("LpNormalization", m.x, axis=a.axes[0], p=2)
    else:
        y = m.node("Div", m.x, m.node("ReduceL2", m.x, m.ints(*a.axes), keepdims=1))
    return m.node("Mul", y, along_axis(m, "weight", 1, a.shared_scale)) if a.scale else y


def rms_norm(m: Model) -> str:
    a: RMSNorm = m.attributes or RMSNorm()
    m.opset = NEWER
    rest = m.shape[a.axis :]
    scale = "weight" if a.scale else m.tensor([1.0] * math.prod(rest), rest)
    return m.node("RMSNormalization", m.x, scale, axis=a.axis, epsilon=a.eps)


def instance_norm(m: Model) -> str:
    a: InstanceNorm = m.attributes or InstanceNorm()
    if not a.variance:
        places = m.ints(*range(2, len(m.shape)))
        return m.node("Sub", m.x, m.node("ReduceMean", m.x, places, keepdims=1))
    names = list(m.params) or [m.numbers([1.0] * m.shape[1]), m.numbers([0.0] * m.shape[1])]
    return m.node("InstanceNormalization", m.x, *names, epsilon=a.eps)


def _values(m: Model, name: str, shape: tuple[int, ...]) -> str:
    """Values of Scale or Bias, with axes of one behind them."""
    axis = (m.attributes or at.Scale()).axis % len(m.shape) if shape else 0
    rest = len(m.shape) - axis - len(shape)
    return m.node("Reshape", name, m.ints(*shape, *(1 for _ in range(rest))))


def scale(m: Model) -> str:
    given = len(m.inputs) == 2
    shape = (m.inputs[1] if given else m.params["weight"]).shape
    y = m.node("Mul", m.x, _values(m, m.of(1) if given else "weight", shape))
    return m.node("Add", y, _values(m, "bias", shape)) if "bias" in m.params else y


def bias(m: Model) -> str:
    given = len(m.inputs) == 2
    held = m.inputs[1] if given else m.params["bias"]
    return m.node("Add", m.x, _values(m, m.of(1) if given else "bias", held.shape))


MODELS: dict[str, Writer] = {
    "batch_norm": batch_norm,
    "layer_norm": layer_norm,
    "group_norm": group_norm,
    "lrn": lrn,
    "l2_norm": l2_norm,
    "rms_norm": rms_norm,
    "instance_norm": instance_norm,
    "scale": scale,
    "bias": bias,
}
