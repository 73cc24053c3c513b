"""Normalisations, and learned factors and shifts."""

from __future__ import annotations

from math import prod

from layerscope.graph.attributes import (
    BatchNorm,
    Bias,
    GroupNorm,
    InstanceNorm,
    L2Norm,
    LayerNorm,
    LocalResponseNorm,
    PReLU,
    RMSNorm,
    Scale,
)
from layerscope.graph.types import Shape
from layerscope.lower.builder import Site, Writer


def batch_norm(s: Site) -> str:
    a: BatchNorm = s.attributes or BatchNorm()
    channels = s.shape[1:2]
    names = (
        s.param_or("weight", channels, 1.0),
        s.param_or("bias", channels, 0.0),
        s.param("running_mean"),
        s.param("running_var"),
    )
    return s.add("BatchNormalization", s.x, *names, epsilon=a.eps)


def _centred(s: Site, axes: range) -> str:
    return s.add("Sub", s.x, s.add("ReduceMean", s.x, s.ints(*axes), keepdims=1))


def _affine(s: Site, y: str, shape: Shape) -> str:
    for op, name in (("Mul", "weight"), ("Add", "bias")):
        y = s.add(op, y, s.param(name, shape)) if s.has(name) else y
    return y


def layer_norm(s: Site) -> str:
    a: LayerNorm = s.attributes or LayerNorm()
    rest = s.shape[a.axis % s.rank :]
    if not a.variance:
        return _affine(s, _centred(s, range(a.axis % s.rank, s.rank)), rest)
    bias = (s.param("bias"),) if s.has("bias") else ()
    scale = s.param_or("weight", rest, 1.0)
    return s.add("LayerNormalization", s.x, scale, *bias, axis=a.axis, epsilon=a.eps)


def group_norm(s: Site) -> str:
    a: GroupNorm = s.attributes
    channels = s.shape[1:2]
    names = s.param_or("weight", channels, 1.0), s.param_or("bias", channels, 0.0)
    x = s.reshape(s.x, (*s.shape, 1)) if s.rank == 2 else s.x
    if a.groups == s.shape[1]:
        y = s.add("InstanceNormalization", x, *names, epsilon=a.eps)
    else:
        y = s.add("GroupNormalization", x, *names, num_groups=a.groups, epsilon=a.eps)
    return s.reshape(y, s.shape) if s.rank == 2 else y


def instance_norm(s: Site) -> str:
    a: InstanceNorm = s.attributes or InstanceNorm()
    channels = s.shape[1:2]
    if not a.variance:
        return _affine(s, _centred(s, range(2, s.rank)), (*channels, *[1] * (s.rank - 2)))
    names = s.param_or("weight", channels, 1.0), s.param_or("bias", channels, 0.0)
    return s.add("InstanceNormalization", s.x, *names, epsilon=a.eps)


def rms_norm(s: Site) -> str:
    """Operator by operator as onnxruntime knows to fuse it; ONNX has it in one from opset 23."""
    a: RMSNorm = s.attributes or RMSNorm()
    axes = s.ints(*range(a.axis % s.rank, s.rank))
    mean = s.add("ReduceMean", s.add("Pow", s.x, s.number(2.0)), axes, keepdims=1)
    root = s.add("Sqrt", s.add("Add", mean, s.number(a.eps)))
    y = s.add("Div", s.x, root)
    return s.add("Mul", y, s.param("weight")) if a.scale else y


def lrn(s: Site) -> str:
    """Within a channel, or of an even size, Σ/n is an average pool that counts its padding."""
    a: LocalResponseNorm = s.attributes
    if not a.within_channel and a.size % 2:
        return s.add("LRN", s.x, size=a.size, alpha=a.alpha, beta=a.beta, bias=a.k)
    before = (a.size - 1) // 2
    after = a.size - 1 - before
    squares = s.add("Mul", s.x, s.x)
    if a.within_channel:
        spatial = s.rank - 2
        mean = _average(s, squares, [a.size] * spatial, [before] * spatial + [after] * spatial)
    else:
        batch, channels, *rest = s.shape
        column = s.reshape(squares, (batch, 1, channels, prod(rest)))
        mean = s.reshape(_average(s, column, [a.size, 1], [before, 0, after, 0]), s.shape)
    scaled = s.add("Add", s.add("Mul", mean, s.number(a.alpha)), s.number(a.k))
    return s.add("Div", s.x, s.add("Pow", scaled, s.number(a.beta)))


def _average(s: Site, x: str, kernel: list[int], pads: list[int]) -> str:
    return s.add("AveragePool", x, kernel_shape=kernel, pads=pads, count_include_pad=1)


def l2_norm(s: Site) -> str:
    a: L2Norm = s.attributes or L2Norm()
    if len(a.axes) == 1:
        y = s.add("LpNormalization", s.x, axis=a.axes[0], p=2)
    else:
        energy = s.add("ReduceSumSquare", s.x, s.ints(*a.axes), keepdims=1)
        y = s.add("Div", s.x, s.add("Sqrt", s.add("Add", energy, s.number(a.eps))))
    if not a.scale:
        return y
    return s.add("Mul", y, s.param("weight", _along(s, 1, () if a.shared_scale else s.shape[1:2])))


def _along(s: Site, axis: int, values: Shape) -> Shape:
    """Values from an axis on, shaped to broadcast against the first input."""
    return (*(values or (1,)), *[1] * (s.rank - axis - max(len(values), 1)))


def _given(s: Site, name: str, a: Scale | Bias) -> str:
    """The learned values, or those of the second input."""
    axis = a.axis % s.rank if s.rank else 0
    if len(s.inputs) == 2:
        shape = s.call.inputs[1]
        return s.reshape(s.operand(1, s.dtype), _along(s, axis, shape)) if shape else s.inputs[1]
    end = s.rank if a.axes == -1 else axis + a.axes
    return s.param(name, _along(s, axis, s.shape[axis:end]))


def scale(s: Site) -> str:
    a: Scale = s.attributes or Scale()
    y = s.add("Mul", s.x, _given(s, "weight", a))
    if not a.bias:
        return y
    axis = a.axis % s.rank
    end = s.rank if a.axes == -1 else axis + a.axes
    values = s.call.inputs[1] if len(s.inputs) == 2 else s.shape[axis:end]
    return s.add("Add", y, s.param("bias", _along(s, axis, values)))


def bias(s: Site) -> str:
    return s.add("Add", s.x, _given(s, "bias", s.attributes or Bias()))


def prelu(s: Site) -> str:
    a: PReLU = s.attributes or PReLU()
    shape = (1,) * max(s.rank - 1, 1) if a.shared else _along(s, 1, s.shape[1:2])
    return s.add("PRelu", s.x, s.param("weight", shape))


WRITERS: dict[str, Writer] = {
    "batch_norm": batch_norm,
    "layer_norm": layer_norm,
    "group_norm": group_norm,
    "instance_norm": instance_norm,
    "rms_norm": rms_norm,
    "lrn": lrn,
    "l2_norm": l2_norm,
    "scale": scale,
    "bias": bias,
    "prelu": prelu,
}
