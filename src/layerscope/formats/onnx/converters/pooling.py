"""Pooling by windows and global pooling."""

from __future__ import annotations

from layerscope.formats.onnx.converters.convolution import window
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.graph import attributes as at

KINDS = {"MaxPool": "max_pool", "AveragePool": "avg_pool", "LpPool": "lp_pool"}
GLOBAL = {
    "GlobalMaxPool": "global_max_pool",
    "GlobalAveragePool": "global_avg_pool",
    "GlobalLpPool": "global_lp_pool",
}


def pool(node: OnnxNode) -> None:
    """MaxPool, AveragePool, LpPool."""
    kernel = node.ints_attr("kernel_shape")
    indices = len(node.outputs) > 1 and bool(node.outputs[1])
    attrs = at.Pool(
        window(node, kernel),
        bool(node.int_attr("count_include_pad")),
        node.int_attr("p", 2),
        indices=indices,
    )
    node.emit(KINDS[node.op], (node.input(),), attrs)


def global_pool(node: OnnxNode) -> None:
    """GlobalMaxPool, GlobalAveragePool, GlobalLpPool."""
    attrs = at.GlobalPool(node.int_attr("p", 2)) if node.op == "GlobalLpPool" else None
    node.emit(GLOBAL[node.op], (node.input(),), attrs)


OPERATORS: ConverterTable = {
    **{("", op): Converter(pool, "X") for op in KINDS},
    **{("", op): Converter(global_pool, "X") for op in GLOBAL},
}
