"""Gather, scatter, one-hot and where."""

from __future__ import annotations

from layerscope.formats.onnx.dtypes import FLOATS, QUANTIZED
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.graph import attributes as at
from layerscope.ops.spec import axis_of, broadcast


def gather(node: OnnxNode) -> None:
    """Gather, TorchEmbedding: an embedding if it selects rows of a stored table by an input."""
    data = node.shape()
    axis = axis_of(node.int_attr("axis"), len(data))
    table = node.input()
    entry = table.initializer
    if entry is not None and axis == 0 and len(data) == 2:
        floats = entry.dtype in FLOATS or (entry.quantized and table.dtype in FLOATS)
        if floats and not node.input("indices").constant:
            attrs = at.Embedding(data[0], data[1])
            node.emit(
                "embedding",
                (node.input("indices"),),
                attrs,
                params=(node.param(0, "weight", "embedding"),),
            )
            return
        if entry.dtype in QUANTIZED and not floats:  # dequantized by a later node
            entry.quantized = True
            node.emit("gather", (table, node.input("indices")), at.Gather(axis), roles="embedding")
            return
    node.emit("gather", (table, node.input("indices")), at.Gather(axis))


def gather_elements(node: OnnxNode) -> None:
    """GatherElements."""
    attrs = at.Gather(axis_of(node.int_attr("axis"), len(node.shape("data"))), elements=True)
    node.emit("gather", (node.input("data"), node.input("indices")), attrs)


def gather_nd(node: OnnxNode) -> None:
    """GatherND."""
    node.emit(
        "gather_nd",
        (node.input("data"), node.input("indices")),
        at.GatherND(node.int_attr("batch_dims")),
    )


def scatter(node: OnnxNode) -> None:
    """ScatterElements, and Scatter before opset 11."""
    added = node.str_attr("reduction", "none") != "none"
    attrs = at.Scatter(axis_of(node.int_attr("axis"), len(node.shape("data"))), add=added)
    node.emit("scatter", (node.input("data"), node.input("indices"), node.input("updates")), attrs)


def scatter_nd(node: OnnxNode) -> None:
    """ScatterND."""
    attrs = at.Scatter(add=node.str_attr("reduction", "none") != "none")
    node.emit(
        "scatter_nd", (node.input("data"), node.input("indices"), node.input("updates")), attrs
    )


def one_hot(node: OnnxNode) -> None:
    """OneHot."""
    depth = int(node.need_value("depth").values[0])
    node.mark_constant("values")
    attrs = at.OneHot(depth, node.int_attr("axis", -1))
    y = node.emit("one_hot", (node.input("indices"),), attrs)[0]
    y.dtype = node.dtype("values")


def tensor_scatter(node: OnnxNode) -> None:
    """TensorScatter: a cache updated at some positions."""
    node.emit_shaped(
        "select",
        (node.input("past_cache"), node.input("update")),
        (node.shape("past_cache"),),
        (node.dtype("past_cache"),),
    )


def where(node: OnnxNode) -> None:
    """Where."""
    broadcast((node.shape("condition"), node.shape("X"), node.shape("Y")))
    node.emit("where", (node.input("condition"), node.input("X"), node.input("Y")))


OPERATORS: ConverterTable = {
    ("", "Gather"): Converter(gather, "data indices"),
    ("", "GatherElements"): Converter(gather_elements, "data indices"),
    ("", "GatherND"): Converter(gather_nd, "data indices"),
    ("com.microsoft", "GatherND"): Converter(gather_nd, "data indices"),
    ("", "Scatter"): Converter(scatter, "data indices updates"),
    ("", "ScatterElements"): Converter(scatter, "data indices updates"),
    ("", "ScatterND"): Converter(scatter_nd, "data indices updates"),
    ("", "OneHot"): Converter(one_hot, "indices depth values"),
    ("", "TensorScatter"): Converter(tensor_scatter, "past_cache update write_indices"),
    ("com.microsoft", "TorchEmbedding"): Converter(
        gather, "weight indices padding_idx scale_grad_by_freq"
    ),
    ("", "Where"): Converter(where, "condition X Y"),
}
