"""Pooling by windows and global pooling."""

from __future__ import annotations

from layerscope.formats.onnx.converters.convolution import window
from layerscope.formats.onnx.node import OnnxNode, Op, OpTable
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


def unpool(node: OnnxNode) -> None:
    """MaxUnpool: elements back at the positions of their maxima."""
    x = node.shape("X")
    kernel = node.ints_attr("kernel_shape")
    rank = len(kernel)
    strides, pads = (
        node.ints_attr("strides") or (1,) * rank,
        node.ints_attr("pads") or (0,) * (2 * rank),
    )
    if node.has("output_shape"):
        sizes = node.need_value("output_shape").ints()[-rank:]
    else:
        sizes = tuple(
            (x[n + 2] - 1) * strides[n] + kernel[n] - pads[n] - pads[n + rank] for n in range(rank)
        )
    node.emit("unpool", (node.input("X"), node.input("I")), at.Unpool(size=sizes))


def roi_pool(node: OnnxNode) -> None:
    """MaxRoiPool."""
    height, width = node.ints_attr("pooled_shape")
    attrs = at.RoIPool((height, width), node.float_attr("spatial_scale", 1.0))
    node.emit("roi_pool", (node.input("X"), node.input("rois")), attrs)


OPERATORS: OpTable = {
    **{("", op): Op(pool, "X") for op in KINDS},
    **{("", op): Op(global_pool, "X") for op in GLOBAL},
    ("", "MaxUnpool"): Op(unpool, "X I output_shape"),
    ("", "MaxRoiPool"): Op(roi_pool, "X rois"),
}
