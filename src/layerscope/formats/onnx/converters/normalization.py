"""Normalization: batch, layer, group, instance, RMS, local response, Lp."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.errors import ShapeError
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.node_view import InputId
from layerscope.formats.onnx.tensor_info import TensorInfo
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, Role
from layerscope.ops.spec import axis_of

Arrays = Sequence[tuple[InputId, str, Role]]  # input, name of the parameter, role


def arrays(node: OnnxNode, wanted: Arrays) -> tuple[list[Param], list[TensorInfo]]:
    """Inputs that are stored as parameters; those that are computed as inputs."""
    params: list[Param] = []
    given: list[TensorInfo] = []
    for which, name, role in wanted:
        tensor = node.optional(which)
        if tensor is None:
            continue
        if tensor.initializer is None:
            given.append(tensor)
        else:
            params.append(node.reader.own_param(tensor, name, role))
    return params, given


AFFINE: Arrays = ((1, "weight", "scale"), (2, "bias", "bias"))  # of all norms
STATISTICS: Arrays = (
    ("input_mean", "running_mean", "statistic"),
    ("input_var", "running_var", "statistic"),
)


def batch_norm(node: OnnxNode) -> None:
    """BatchNormalization by stored statistics."""
    params, given = arrays(node, (*AFFINE, *STATISTICS))
    attrs = at.BatchNorm(
        eps=node.float_attr("epsilon", 1e-5), momentum=node.float_attr("momentum", 0.9)
    )
    outputs = node.outputs
    node.emit("batch_norm", (node.input("X"), *given), attrs, params=params, outputs=outputs[:1])
    for n in range(1, len(outputs)):
        node.extra_output(n, node.shape("X")[1:2], node.dtype("X"))


def instance_norm(node: OnnxNode) -> None:
    """InstanceNormalization."""
    params, given = arrays(node, AFFINE)
    attrs = at.InstanceNorm(affine=True, eps=node.float_attr("epsilon", 1e-5))
    node.emit("instance_norm", (node.input("input"), *given), attrs, params=params)


def layer_norm(node: OnnxNode) -> None:
    """LayerNormalization; mean and inverse deviation may be outputs too."""
    params, given = arrays(node, AFFINE)
    x = node.shape("X")
    axis = axis_of(node.int_attr("axis", -1), len(x))
    attrs = at.LayerNorm(axis - len(x), bias=node.has("B"), eps=node.float_attr("epsilon", 1e-5))
    outputs = node.outputs
    node.emit("layer_norm", (node.input("X"), *given), attrs, params=params, outputs=outputs[:1])
    for n in (1, 2):
        node.extra_output(n, (*x[:axis], *(1 for _ in x[axis:])), "fp32")


def group_norm(node: OnnxNode) -> None:
    """GroupNormalization."""
    params, given = arrays(node, AFFINE)
    attrs = at.GroupNorm(node.int_attr("num_groups", 1), eps=node.float_attr("epsilon", 1e-5))
    node.emit("group_norm", (node.input("X"), *given), attrs, params=params)


def rms_norm(node: OnnxNode) -> None:
    """RMSNormalization, and SimplifiedLayerNormalization before it."""
    params, given = arrays(node, (("scale", "weight", "scale"),))
    x = node.shape("X")
    axis = axis_of(node.int_attr("axis", -1), len(x))
    attrs = at.RMSNorm(axis - len(x), eps=node.float_attr("epsilon", 1e-5))
    outputs = node.outputs
    node.emit("rms_norm", (node.input("X"), *given), attrs, params=params, outputs=outputs[:1])
    node.extra_output(1, (*x[:axis], *(1 for _ in x[axis:])), "fp32")


def response_norm(node: OnnxNode) -> None:
    """LRN."""
    attrs = at.LocalResponseNorm(
        node.int_attr("size", 1),
        node.float_attr("alpha", 1e-4),
        node.float_attr("beta", 0.75),
        node.float_attr("bias", 1.0),
    )
    node.emit("lrn", (node.input(),), attrs)


def lp_norm(node: OnnxNode) -> None:
    """LpNormalization: division by a norm along one axis."""
    x = node.input()
    axis = node.int_attr("axis", -1)
    if node.int_attr("p", 2) == 2:
        node.emit("l2_norm", (x,), at.L2Norm((axis_of(axis, len(node.shape())),)))
        return
    norm = node.emit("reduce_l1", (x,), at.Reduce((axis,), keep=True), part="norm")[0]
    node.emit("div", (x, norm))


def mean_variance(node: OnnxNode) -> None:
    """MeanVarianceNormalization, by its steps."""
    x = node.input()
    attrs = at.Reduce(node.ints_attr("axes", (0, 2, 3)), keep=True)
    if len(node.shape()) < 3:
        raise ShapeError(f"normalisation of {node.shape()} over {attrs.axes}")
    mean = node.emit("reduce_mean", (x,), attrs, part="mean")[0]
    centred = node.emit("sub", (x, mean), part="centred")[0]
    squares = node.emit("square", (centred,), part="squares")[0]
    variance = node.emit("reduce_mean", (squares,), attrs, part="variance")[0]
    root = node.emit("sqrt", (variance,), part="deviation")[0]
    node.emit("div", (centred, root))


OPERATORS: ConverterTable = {
    ("", "BatchNormalization"): Converter(batch_norm, "X scale B input_mean input_var"),
    ("", "InstanceNormalization"): Converter(instance_norm, "input scale B"),
    ("", "LayerNormalization"): Converter(layer_norm, "X Scale B"),
    ("com.microsoft", "LayerNormalization"): Converter(layer_norm, "X Scale B"),
    ("", "GroupNormalization"): Converter(group_norm, "X scale bias"),
    ("", "RMSNormalization"): Converter(rms_norm, "X scale"),
    ("", "SimplifiedLayerNormalization"): Converter(rms_norm, "X scale"),
    ("com.microsoft", "SimplifiedLayerNormalization"): Converter(rms_norm, "X scale"),
    ("com.microsoft", "RMSNormalization"): Converter(rms_norm, "X scale"),
    ("", "LRN"): Converter(response_norm, "X"),
    ("", "LpNormalization"): Converter(lp_norm, "input"),
    ("", "MeanVarianceNormalization"): Converter(mean_variance, "X"),
}
