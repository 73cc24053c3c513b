"""Sampling at places that data decides."""

from __future__ import annotations

from typing import Literal

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


class GridSample(Struct, frozen=True, gc=False):
    """Sampling N x C x H x W at the positions of a grid N x h x w x 2."""

    mode: Literal["nearest", "bilinear", "bicubic"] = "bilinear"


class NonMaxSuppression(Struct, frozen=True, gc=False):
    """At most `most` boxes per class that overlap no better one."""

    most: int


class PriorBox(Struct, frozen=True, gc=False):
    """`boxes` default boxes of 4 sizes and 4 variances at every position of the first input."""

    boxes: int
