"""Normalization layers, and layers that scale or shift by parameters."""

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
    RMSNorm,
    Scale,
)
from layerscope.graph.types import Shape
from layerscope.lower.builder import Emitter, NodeEmitter


def batch_norm(node: NodeEmitter) -> str:
    a: BatchNorm = node.attributes or BatchNorm()
    channels = node.shape[1:2]
    names = (
        node.param_or("weight", channels, 1.0),
        node.param_or("bias", channels, 0.0),
        node.param("running_mean"),
        node.param("running_var"),
    )
    return node.add("BatchNormalization", node.x, *names, epsilon=a.eps)


def _centred(node: NodeEmitter, axes: range) -> str:
    return node.add("Sub", node.x, node.add("ReduceMean", node.x, node.ints(*axes), keepdims=1))


def _affine(node: NodeEmitter, y: str, shape: Shape) -> str:
    for op, name in (("Mul", "weight"), ("Add", "bias")):
        y = node.add(op, y, node.param(name, shape)) if node.has(name) else y
    return y


def layer_norm(node: NodeEmitter) -> str:
    a: LayerNorm = node.attributes or LayerNorm()
    rest = node.shape[a.axis % node.rank :]
    if not a.variance:
        return _affine(node, _centred(node, range(a.axis % node.rank, node.rank)), rest)
    bias = (node.param("bias"),) if node.has("bias") else ()
    scale = node.param_or("weight", rest, 1.0)
    return node.add("LayerNormalization", node.x, scale, *bias, axis=a.axis, epsilon=a.eps)


def group_norm(node: NodeEmitter) -> str:
    a: GroupNorm = node.attributes
    channels = node.shape[1:2]
    names = node.param_or("weight", channels, 1.0), node.param_or("bias", channels, 0.0)
    x = node.reshape(node.x, (*node.shape, 1)) if node.rank == 2 else node.x
    if a.groups == node.shape[1]:
        y = node.add("InstanceNormalization", x, *names, epsilon=a.eps)
    else:
        y = node.add("GroupNormalization", x, *names, num_groups=a.groups, epsilon=a.eps)
    return node.reshape(y, node.shape) if node.rank == 2 else y


def instance_norm(node: NodeEmitter) -> str:
    a: InstanceNorm = node.attributes or InstanceNorm()
    channels = node.shape[1:2]
    if not a.variance:
        return _affine(
            node, _centred(node, range(2, node.rank)), (*channels, *[1] * (node.rank - 2))
        )
    names = node.param_or("weight", channels, 1.0), node.param_or("bias", channels, 0.0)
    return node.add("InstanceNormalization", node.x, *names, epsilon=a.eps)


def rms_norm(node: NodeEmitter) -> str:
    """The operators that onnxruntime fuses; ONNX has RMSNormalization from opset 23 on."""
    a: RMSNorm = node.attributes or RMSNorm()
    axes = node.ints(*range(a.axis % node.rank, node.rank))
    mean = node.add("ReduceMean", node.add("Pow", node.x, node.number(2.0)), axes, keepdims=1)
    root = node.add("Sqrt", node.add("Add", mean, node.number(a.eps)))
    y = node.add("Div", node.x, root)
    return node.add("Mul", y, node.param("weight")) if a.scale else y


def lrn(node: NodeEmitter) -> str:
    """LRN; within channels or of an even size, with an average pool that counts padding."""
    a: LocalResponseNorm = node.attributes
    if not a.within_channel and a.size % 2:
        return node.add("LRN", node.x, size=a.size, alpha=a.alpha, beta=a.beta, bias=a.k)
    before = (a.size - 1) // 2
    after = a.size - 1 - before
    squares = node.add("Mul", node.x, node.x)
    if a.within_channel:
        spatial = node.rank - 2
        mean = _average(node, squares, [a.size] * spatial, [before] * spatial + [after] * spatial)
    else:
        batch, channels, *rest = node.shape
        column = node.reshape(squares, (batch, 1, channels, prod(rest)))
        mean = node.reshape(_average(node, column, [a.size, 1], [before, 0, after, 0]), node.shape)
    scaled = node.add("Add", node.add("Mul", mean, node.number(a.alpha)), node.number(a.k))
    return node.add("Div", node.x, node.add("Pow", scaled, node.number(a.beta)))


def _average(node: NodeEmitter, x: str, kernel: list[int], pads: list[int]) -> str:
    return node.add("AveragePool", x, kernel_shape=kernel, pads=pads, count_include_pad=1)


def l2_norm(node: NodeEmitter) -> str:
    a: L2Norm = node.attributes or L2Norm()
    if len(a.axes) == 1:
        y = node.add("LpNormalization", node.x, axis=a.axes[0], p=2)
    else:
        energy = node.add("ReduceSumSquare", node.x, node.ints(*a.axes), keepdims=1)
        y = node.add("Div", node.x, node.add("Sqrt", node.add("Add", energy, node.number(a.eps))))
    if not a.scale:
        return y
    return node.add(
        "Mul",
        y,
        node.param("weight", node.broadcast_shape(1, () if a.shared_scale else node.shape[1:2])),
    )


def _values(node: NodeEmitter, name: str, a: Scale | Bias) -> str:
    """The parameter, or the second input in its stead."""
    axis = a.axis % node.rank if node.rank else 0
    if len(node.inputs) == 2:
        shape = node.call.inputs[1]
        return (
            node.reshape(node.operand(1, node.dtype), node.broadcast_shape(axis, shape))
            if shape
            else node.inputs[1]
        )
    end = node.rank if a.axes == -1 else axis + a.axes
    return node.param(name, node.broadcast_shape(axis, node.shape[axis:end]))


def scale(node: NodeEmitter) -> str:
    a: Scale = node.attributes or Scale()
    y = node.add("Mul", node.x, _values(node, "weight", a))
    if not a.bias:
        return y
    axis = a.axis % node.rank
    end = node.rank if a.axes == -1 else axis + a.axes
    values = node.call.inputs[1] if len(node.inputs) == 2 else node.shape[axis:end]
    return node.add("Add", y, node.param("bias", node.broadcast_shape(axis, values)))


def bias(node: NodeEmitter) -> str:
    return node.add("Add", node.x, _values(node, "bias", node.attributes or Bias()))


EMITTERS: dict[str, Emitter] = {
    "batch_norm": batch_norm,
    "layer_norm": layer_norm,
    "group_norm": group_norm,
    "instance_norm": instance_norm,
    "rms_norm": rms_norm,
    "lrn": lrn,
    "l2_norm": l2_norm,
    "scale": scale,
    "bias": bias,
}
