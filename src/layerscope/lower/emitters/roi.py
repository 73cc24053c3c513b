"""Ops of object detection: regions of interest and boxes."""

from __future__ import annotations

from typing import Any

from layerscope.graph.attributes import NonMaxSuppression, PriorBox, RoIAlign, RoIPool
from layerscope.lower.builder import Emitter, NodeEmitter, OnnxConstant

OVERLAP = 0.5  # IoU threshold, which a graph does not contain
STEP = 8.0  # of prior boxes, in pixels of the image
VARIANCES = (0.1, 0.1, 0.2, 0.2)


def roi_pool(node: NodeEmitter) -> str:
    a: RoIPool = node.attributes
    regions = node.inputs[1]
    if len(node.call.inputs[1]) != 2:
        regions = node.reshape(regions, (-1, 5))
    return node.add("MaxRoiPool", node.x, regions, pooled_shape=a.output, spatial_scale=a.scale)


def roi_align(node: NodeEmitter) -> str:
    """ONNX has image indices and corners as separate inputs."""
    a: RoIAlign = node.attributes
    regions, (count, columns) = node.inputs[1], node.call.inputs[1]
    corners = regions
    if columns == 5:
        corners = node.add("Slice", regions, node.ints(1), node.ints(5), node.ints(1))
        first = node.add("Slice", regions, node.ints(0), node.ints(1), node.ints(1))
        images = node.cast(node.reshape(first, (count,)), "int64")
    elif len(node.inputs) == 3:
        images = node.operand(2, "int64")
    else:
        images = node.builder.full((count,), 0, "int64")
    attributes: dict[str, Any] = {"output_height": a.output[0], "output_width": a.output[1]}
    attributes.update(mode="avg", sampling_ratio=a.samples, spatial_scale=a.scale)
    return node.add("RoiAlign", node.x, corners, images, **attributes)


def nms(node: NodeEmitter) -> str:
    """Always the largest number of rows; rows without a box are -1."""
    a: NonMaxSuppression = node.attributes
    overlap = node.builder.constant(OnnxConstant((OVERLAP,), (1,), "fp32"))
    names = node.operand(0, "fp32"), node.operand(1, "fp32")
    kept = node.add("NonMaxSuppression", *names, node.ints(a.most), overlap)
    rows, columns = node.call.y
    filled = node.add("Concat", kept, node.builder.full((rows, columns), -1, "int64"), axis=0)
    return node.add("Slice", filled, node.ints(0), node.ints(rows), node.ints(0))


def prior_box(node: NodeEmitter) -> str:
    """A constant, since it depends on shapes only: boxes at every position, then variances."""
    a: PriorBox = node.attributes
    (height, width), (tall, wide) = node.shape[2:], node.call.inputs[1][2:]
    values = []
    for i in range(height):
        for j in range(width):
            x, y = (j + 0.5) * STEP, (i + 0.5) * STEP
            for w, h in half_sizes(a.boxes):
                values += [(x - w) / wide, (y - h) / tall, (x + w) / wide, (y + h) / tall]
    values += VARIANCES * (len(values) // 4)
    return node.add("Constant", value=OnnxConstant(tuple(values), node.call.y, node.dtype))


def half_sizes(boxes: int) -> list[tuple[float, float]]:
    """Half width and height of every box; arbitrary, since a graph contains only their number."""
    return [(4.0 + 3 * n, 5.0 + 2 * n) for n in range(boxes)]


EMITTERS: dict[str, Emitter] = {
    "roi_pool": roi_pool,
    "roi_align": roi_align,
    "nms": nms,
    "prior_box": prior_box,
}

REFUSED = {
    "proposals": "its boxes depend on data",
    "detections": "its boxes depend on data",
    "psroi_pool": "ONNX has no position-sensitive RoI pooling",
}
