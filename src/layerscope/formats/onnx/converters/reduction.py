"""Reductions, ArgMax and ArgMin."""

from __future__ import annotations

from layerscope.formats.onnx.arrays import axes_of
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.graph import attributes as at

KINDS = {
    "ReduceSum": "reduce_sum", "ReduceMean": "reduce_mean", "ReduceMax": "reduce_max",
    "ReduceMin": "reduce_min", "ReduceProd": "reduce_prod", "ReduceL1": "reduce_l1",
    "ReduceL2": "reduce_l2", "ReduceSumSquare": "reduce_sum_square",
    "ReduceLogSum": "reduce_log_sum", "ReduceLogSumExp": "reduce_log_sum_exp",
}  # fmt: skip
ARGS = {"ArgMax": "arg_max", "ArgMin": "arg_min"}


def reduce(node: OnnxNode) -> None:
    """A reduction; the axes are an attribute, or an input since opset 13 or 18."""
    if node.has("axes"):
        node.need_value("axes")
    axes = axes_of(node.attrs, [None, node.value("axes")])
    if not axes and node.int_attr("noop_with_empty_axes"):
        node.alias(node.input("data"))
        return
    attrs = at.Reduce(axes or (), keep=bool(node.int_attr("keepdims", 1)))
    node.emit(KINDS[node.op], (node.input("data"),), attrs)


def arg_reduce(node: OnnxNode) -> None:
    """ArgMax, ArgMin."""
    attrs = at.Reduce((node.int_attr("axis"),), keep=bool(node.int_attr("keepdims", 1)))
    node.emit(ARGS[node.op], (node.input(),), attrs)


OPERATORS: ConverterTable = {
    **{("", op): Converter(reduce, "data axes") for op in KINDS},
    **{("", op): Converter(arg_reduce, "data") for op in ARGS},
}
