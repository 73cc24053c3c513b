"""Attributes of resampling, unpooling and pixel shuffle."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Sampling = Literal["nearest", "bilinear", "bicubic"]


class Resize(Struct, frozen=True, gc=False):
    """Resampling the spatial axes to `size`, or by `scale` (numerator, denominator) per axis."""

    mode: Sampling = "nearest"
    size: tuple[int, ...] = ()
    scale: tuple[tuple[int, int], ...] = ()
    align_corners: bool = False


class Interp(Struct, frozen=True, gc=False):
    """Bilinear resampling with aligned corners, after removing `crop` elements at both ends.

    To `size`, or each axis divided by `shrink`, then multiplied by `zoom` as Caffe's Interp layer
    does. A second input gives its spatial size instead.
    """

    size: tuple[int, ...] = ()
    shrink: int = 1
    zoom: int = 1
    crop: tuple[int, int] = (0, 0)


class PixelShuffle(Struct, frozen=True, gc=False):
    """Moving blocks of `factor` x `factor` channels into space, or back with `inverse`."""

    factor: int
    inverse: bool = False


class Unpool(Struct, frozen=True, gc=False):
    """Max unpooling: the second input has the index of each element in the output.

    The output has `size`, or `scale` times the input minus `less`, per axis.
    """

    size: tuple[int, ...] = ()
    scale: tuple[int, ...] = ()
    less: tuple[int, ...] = (0, 0)


class GridSample(Struct, frozen=True, gc=False):
    """Sampling N x C x H x W at the positions of a grid N x h x w x 2."""

    mode: Sampling = "bilinear"


class AffineGrid(Struct, frozen=True, gc=False):
    """A sampling grid for an output of `size`, N x C x spatial, from N matrices d x (d + 1)."""

    size: tuple[int, ...]
    align_corners: bool = False
