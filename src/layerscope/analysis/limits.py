"""The smallest image that a network accepts, found by trying sizes."""

from __future__ import annotations

from msgspec.structs import replace

from layerscope.analysis.shapes import infer
from layerscope.errors import ShapeError
from layerscope.graph.types import Graph


def least_image(graph: Graph) -> int | None:
    """The smallest side of a square image whose shapes fit; None if the input is no image.

    The graph must be bound to a shape that fits. Kernels that fit an image fit any larger one.
    """
    image = graph.inputs[0] if graph.inputs else None
    if image is None or image.shape is None or len(image.shape) != 4:
        return None
    lead = image.shape[:2]
    low, high = 0, max(image.shape[2:])
    while high - low > 1:
        side = (low + high) // 2
        tried = replace(image, shape=(*lead, side, side))
        try:
            infer(replace(graph, inputs=(tried, *graph.inputs[1:])))
        except ShapeError:
            low = side
        else:
            high = side
    return high
