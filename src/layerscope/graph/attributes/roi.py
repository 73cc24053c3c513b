"""Attributes of ops on regions of interest and boxes."""

from __future__ import annotations

from msgspec import Struct


class RoIPool(Struct, frozen=True, gc=False):
    """Max pooling of each region (second input, R x 5) into a grid of bins."""

    output: tuple[int, int]
    scale: float = 1.0


class RoIAlign(Struct, frozen=True, gc=False):
    """Averages of bilinear samples, `samples` x `samples` in each bin of each region."""

    output: tuple[int, int]
    samples: int = 2
    scale: float = 1.0


class PSRoIPool(Struct, frozen=True, gc=False):
    """Averages of each region, each bin of a `group` x `group` grid from its own channels."""

    channels: int
    group: int
    scale: float = 1.0


class NonMaxSuppression(Struct, frozen=True, gc=False):
    """Non-maximum suppression: at most `most` boxes per class."""

    most: int


class PriorBox(Struct, frozen=True, gc=False):
    """`boxes` default boxes of 4 sizes and 4 variances at every position of the first input."""

    boxes: int


class Proposals(Struct, frozen=True, gc=False):
    """The `count` best boxes (R x 5) after suppression among the `before` best anchors."""

    count: int
    before: int = 6000


class Detections(Struct, frozen=True, gc=False):
    """At most `keep` boxes per image (7 numbers each) from offsets, scores and prior boxes.

    Suppression compares the `top` best boxes of every class; -1: all.
    """

    classes: int
    keep: int = -1
    top: int = -1
    shared: bool = True  # False: each class has its own offsets
