"""Suggestions for the shape of an input that a file leaves open, by its reader and its name."""

from __future__ import annotations

from layerscope.graph import attributes as at
from layerscope.graph.types import Node

IMAGE = "1x3x224x224"
REGIONS = "300x5"  # image index and two corners
# Common names of inputs, and shapes that fit.
NAMED = (
    ("im_info", "1x3"),
    ("iminfo", "1x3"),
    ("gt_box", "20x5"),
    ("gt_bbox", "20x5"),
    ("gtbox", "20x5"),
    ("rois", REGIONS),
    ("proposals", REGIONS),
    ("cont", "20x1"),
    ("clip", "20x1"),
    ("indicator", "20x1"),
    ("marker", "20x1"),
    ("label", "1x1x224x224"),
)
REGION_OPS = ("roi_pool", "roi_align", "psroi_pool")
UNROLLED = ("caffe_lstm", "caffe_rnn")
WINDOWS = ("conv", "conv_transpose", "max_pool", "avg_pool", "stochastic_pool")


def shape_hint(name: str, node: Node) -> str:
    """A shape to suggest for an input of a node, such as 1x3x224x224."""
    index = node.inputs.index(name)
    if node.op in REGION_OPS and index == 1:
        return REGIONS
    if node.op in UNROLLED:  # steps x sequences x features; flags where a sequence continues
        return ("20x1x256", "20x1", "1x256")[min(index, 2)]
    if node.op == "embedding":
        return "20x1"
    if node.op in WINDOWS:
        return _of_rank(node)
    lower = name.lower()
    for word, sizes in NAMED:
        if lower == word or (len(word) > 4 and word in lower):
            return sizes
    return IMAGE


def _of_rank(node: Node) -> str:
    """An image, or a shape with as many spatial axes as the window."""
    attrs = node.attributes
    rank = attrs.window.rank if isinstance(attrs, (at.Conv, at.TransposedConv, at.Pool)) else 2
    return {1: "1x3x224", 3: "1x3x16x112x112"}.get(rank, IMAGE)
