"""Sampling at places that data decides."""

from __future__ import annotations

from msgspec import Struct

from layerscope.graph.attributes.layout import Sampling


class RoIPool(Struct, frozen=True, gc=False):
    """Max pooling of each region (second input, R x 5) into a grid of bins."""

    output: tuple[int, int]
    scale: float = 1.0


class RoIAlign(Struct, frozen=True, gc=False):
    """Averages of bilinear samples, `samples` x `samples` in each bin of each region."""

    output: tuple[int, int]
    samples: int = 2
    scale: float = 1.0


class GridSample(Struct, frozen=True, gc=False):
    """Sampling N x C x H x W at the positions of a grid N x h x w x 2."""

    mode: Sampling = "bilinear"


class AffineGrid(Struct, frozen=True, gc=False):
    """A grid for sampling a picture of `size`, N x C x places, turned by N matrices d x (d + 1)."""

    size: tuple[int, ...]
    align_corners: bool = False


class NonMaxSuppression(Struct, frozen=True, gc=False):
    """At most `most` boxes per class that overlap no better one."""

    most: int


class PriorBox(Struct, frozen=True, gc=False):
    """`boxes` default boxes of 4 sizes and 4 variances at every position of the first input."""

    boxes: int


class PSRoIPool(Struct, frozen=True, gc=False):
    """Averages of each region, every bin of a `group` x `group` grid from channels of its own."""

    channels: int
    group: int
    scale: float = 1.0


class Proposals(Struct, frozen=True, gc=False):
    """The `count` best boxes (R x 5) of scores and offsets of anchors, out of the `before` best."""

    count: int
    before: int = 6000


class Detections(Struct, frozen=True, gc=False):
    """At most `keep` boxes an image (7 numbers each) of offsets, scores and prior boxes.

    Of every class the `top` best boxes are compared with each other; -1 is all of them.
    """

    classes: int
    keep: int = -1
    top: int = -1
    shared: bool = True  # False: every class has offsets of its own
