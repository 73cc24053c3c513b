"""TopK, and cumulative sums and products."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.graph import attributes as at
from layerscope.ops.spec import axis_of


def top_k(node: OnnxNode) -> None:
    """TopK; `K` is an attribute before opset 10."""
    axis = node.int_attr("axis", -1)
    k = int(node.need_value("K").item) if node.has("K") else node.int_attr("k", 1)
    x = node.shape("X")
    size = x[axis_of(axis, len(x))]
    if k > size:
        raise ShapeError(f"the {k} largest of {size}")
    node.emit("top_k", (node.input("X"),), at.TopK(k, axis))


def cumulate(node: OnnxNode) -> None:
    """CumSum, CumProd."""
    x, axes = node.shape("x"), node.value("axis")
    op = "cum_prod" if node.op == "CumProd" else "cum_sum"
    if axes is not None:
        node.emit(op, (node.input("x"),), at.CumSum(axis_of(int(axes.item), len(x))))
        return
    longest = x.index(max(x)) if x else 0
    note = f"a bound: along the longest axis, as {node.unknown_value('axis')}"
    node.emit(op, (node.input("x"),), at.CumSum(longest), estimate=True, note=note)


OPERATORS: ConverterTable = {
    ("", "TopK"): Converter(top_k, "X K"),
    ("", "CumSum"): Converter(cumulate, "x axis"),
    ("", "CumProd"): Converter(cumulate, "x axis"),
}
