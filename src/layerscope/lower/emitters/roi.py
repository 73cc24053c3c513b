"""Sampling at places that data decides."""

from __future__ import annotations

from typing import Any

from layerscope.graph.attributes import NonMaxSuppression, PriorBox, RoIAlign, RoIPool
from layerscope.lower.builder import Array, Site, Writer

OVERLAP = 0.5  # from where on a box gives way to a better one: the graph does not tell
STEP = 8.0  # of prior boxes, in pixels of the image
VARIANCES = (0.1, 0.1, 0.2, 0.2)


def roi_pool(s: Site) -> str:
    a: RoIPool = s.attributes
    regions = s.inputs[1]
    if len(s.call.inputs[1]) != 2:
        regions = s.reshape(regions, (-1, 5))
    return s.add("MaxRoiPool", s.x, regions, pooled_shape=a.output, spatial_scale=a.scale)


def roi_align(s: Site) -> str:
    """ONNX takes the images apart from the corners."""
    a: RoIAlign = s.attributes
    regions, (count, columns) = s.inputs[1], s.call.inputs[1]
    corners = regions
    if columns == 5:
        corners = s.add("Slice", regions, s.ints(1), s.ints(5), s.ints(1))
        first = s.add("Slice", regions, s.ints(0), s.ints(1), s.ints(1))
        images = s.cast(s.reshape(first, (count,)), "int64")
    elif len(s.inputs) == 3:
        images = s.operand(2, "int64")
    else:
        images = s.draft.full((count,), 0, "int64")
    told: dict[str, Any] = {"output_height": a.output[0], "output_width": a.output[1]}
    told.update(mode="avg", sampling_ratio=a.samples, spatial_scale=a.scale)
    return s.add("RoiAlign", s.x, corners, images, **told)


def nms(s: Site) -> str:
    """As many rows as may be kept; those that were not are -1."""
    a: NonMaxSuppression = s.attributes
    overlap = s.draft.constant(Array((OVERLAP,), (1,), "fp32"))
    names = s.operand(0, "fp32"), s.operand(1, "fp32")
    kept = s.add("NonMaxSuppression", *names, s.ints(a.most), overlap)
    rows, columns = s.call.y
    filled = s.add("Concat", kept, s.draft.full((rows, columns), -1, "int64"), axis=0)
    return s.add("Slice", filled, s.ints(0), s.ints(rows), s.ints(0))


def prior_box(s: Site) -> str:
    """A constant, as it is told by shapes alone: boxes around every place, then variances."""
    a: PriorBox = s.attributes
    (height, width), (tall, wide) = s.shape[2:], s.call.inputs[1][2:]
    values = []
    for i in range(height):
        for j in range(width):
            x, y = (j + 0.5) * STEP, (i + 0.5) * STEP
            for w, h in half_sizes(a.boxes):
                values += [(x - w) / wide, (y - h) / tall, (x + w) / wide, (y + h) / tall]
    values += VARIANCES * (len(values) // 4)
    return s.add("Constant", value=Array(tuple(values), s.call.y, s.dtype))


def half_sizes(boxes: int) -> list[tuple[float, float]]:
    """Half of the width and height of every box: the graph tells only how many there are."""
    return [(4.0 + 3 * n, 5.0 + 2 * n) for n in range(boxes)]


WRITERS: dict[str, Writer] = {
    "roi_pool": roi_pool,
    "roi_align": roi_align,
    "nms": nms,
    "prior_box": prior_box,
}
