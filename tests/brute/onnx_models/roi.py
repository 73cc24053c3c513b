"""ONNX models of regions of interest and boxes."""

from __future__ import annotations

from layerscope.graph.attributes import PriorBox, RoIAlign
from tests.brute.engine import Model, Writer
from tests.brute.roi import OVERLAP, STEP, VARIANCES, half_sizes


def roi_pool(m: Model) -> str:
    told = {"pooled_shape": m.attributes.output, "spatial_scale": m.attributes.scale}
    return m.node("MaxRoiPool", m.x, m.of(1), **told)


def roi_align(m: Model) -> str:
    """ONNX takes the images apart from the corners."""
    a: RoIAlign = m.attributes
    regions, columns = m.of(1), m.inputs[1].shape[1]
    corners = m.node("Slice", regions, m.ints(columns - 4), m.ints(columns), m.ints(1))
    if columns == 5:
        first = m.node("Slice", regions, m.ints(0), m.ints(1), m.ints(1))
        images = m.cast(m.node("Squeeze", first, m.ints(1)), "int64")
    else:
        images = m.of(2) if len(m.inputs) == 3 else m.ints(*[0] * m.inputs[1].shape[0])
    height, width = a.output
    told: dict[str, object] = {"output_height": height, "output_width": width, "mode": "avg"}
    told.update(sampling_ratio=a.samples, spatial_scale=a.scale)
    return m.node("RoiAlign", m.x, corners, images, **told)


def nms(m: Model) -> str:
    most, overlap = m.ints(m.attributes.most), m.numbers([OVERLAP])
    return m.node("NonMaxSuppression", m.x, m.of(1), most, overlap)


def prior_box(m: Model) -> str:
    """Of single operators: centres as a column of places, plus and minus half of every box."""
    a: PriorBox = m.attributes
    (height, width), image = m.shape[2:], m.inputs[1].shape[2:]
    centres = []
    for size, shape in ((width, (1, width, 1, 1)), (height, (height, 1, 1, 1))):
        line = m.node("Add", m.numbers([float(n) for n in range(size)]), m.number(0.5))
        line = m.node("Reshape", m.node("Mul", line, m.number(STEP)), m.ints(*shape))
        centres.append(m.node("Expand", line, m.ints(height, width, 1, 1)))
    middle = m.node("Concat", *centres * 2, axis=3)  # x y x y
    halves = [n for w, h in half_sizes(a.boxes) for n in (-w, -h, w, h)]
    edges = m.node("Add", middle, m.tensor(halves, (a.boxes, 4)))
    parts = m.node("Div", edges, m.numbers([float(image[1]), float(image[0])] * 2))
    count = height * width * a.boxes
    flat = m.node("Reshape", parts, m.ints(1, 1, 4 * count))
    return m.node("Concat", flat, m.tensor(VARIANCES * count, (1, 1, 4 * count)), axis=1)


MODELS: dict[str, Writer] = {
    "roi_pool": roi_pool,
    "roi_align": roi_align,
    "nms": nms,
    "prior_box": prior_box,
}
