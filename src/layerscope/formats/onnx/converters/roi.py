"""Regions of interest: pooling, alignment, and suppression of overlapping boxes."""

from __future__ import annotations

from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.graph import attributes as at
from layerscope.ops import SPECS, Call


def suppression(node: OnnxNode) -> None:
    """NonMaxSuppression: at most `max_output_boxes_per_class`, if that is constant, else all."""
    most = node.value("max_output_boxes_per_class")
    node.mark_constant("iou_threshold", "score_threshold")
    boxes = node.shape("boxes")[1]
    if node.has("max_output_boxes_per_class") and (most is None or not most.values):
        note = f"a bound: all boxes kept, as {node.unknown_value('max_output_boxes_per_class')}"
        _suppressed(node, max(boxes, 1), note)
        return
    # the default of max_output_boxes_per_class is 0: no boxes
    count = min(int(most.values[0]), boxes) if most is not None else 0
    if count < 1 or not boxes:
        node.emit_shaped("constant", (), ((0, 3),), ("int64",))
        return
    _suppressed(node, count)


def _suppressed(node: OnnxNode, count: int, note: str = "") -> None:
    """At most `count` boxes kept, or as many as the file declares."""
    attrs, rule = at.NonMaxSuppression(count), SPECS["nms"]
    inputs = (node.input("boxes"), node.input("scores"))
    call = Call(attrs, (node.shape("boxes"), node.shape("scores")))
    call = Call(attrs, call.inputs, rule.shape(call))
    shape = node.declared_output(0)
    if shape is None or len(shape) != 2 or shape[0] > call.y[0]:
        node.emit("nms", inputs, attrs, estimate=bool(note), note=note)
        return
    ops = rule.ops(call)
    counted = at.CustomCost(
        (shape,), ("int64",), add=ops.add, mul=ops.mul, comp=ops.comp, div=ops.div,
        estimate=note or rule.estimate,
    )  # fmt: skip
    node.emit_custom(inputs, counted, **node.declared_options(0))


def roi_align(node: OnnxNode) -> None:
    """RoiAlign."""
    size = (node.int_attr("output_height", 1), node.int_attr("output_width", 1))
    samples = node.int_attr("sampling_ratio")
    attrs = at.RoIAlign(size, samples or 2, node.float_attr("spatial_scale", 1.0))
    note = (
        ""
        if samples
        else "2 x 2 samples per bin: sampling_ratio 0 leaves their number to run-time data"
    )
    node.emit(
        "roi_align", (node.input("X"), node.input("rois")), attrs, estimate=not samples, note=note
    )


def roi_pool(node: OnnxNode) -> None:
    """MaxRoiPool."""
    height, width = node.ints_attr("pooled_shape")
    attrs = at.RoIPool((height, width), node.float_attr("spatial_scale", 1.0))
    node.emit("roi_pool", (node.input("X"), node.input("rois")), attrs)


def crop_resize(node: OnnxNode) -> None:
    """CropAndResize: one sample at each position of each region."""
    height, width = node.need_value("crop_size").ints()
    attrs = at.RoIAlign((height, width), 1)
    node.emit("roi_align", (node.input("X"), node.input("rois")), attrs)


OPERATORS: ConverterTable = {
    ("", "NonMaxSuppression"): Converter(
        suppression, "boxes scores max_output_boxes_per_class iou_threshold score_threshold"
    ),
    ("", "RoiAlign"): Converter(roi_align, "X rois batch_indices"),
    ("", "MaxRoiPool"): Converter(roi_pool, "X rois"),
    ("com.microsoft", "CropAndResize"): Converter(crop_resize, "X rois batch_indices crop_size"),
}
