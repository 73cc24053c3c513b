"""Attributes of pooling."""

from __future__ import annotations

from msgspec import Struct

from layerscope.graph.attributes.window import Window


class Pool(Struct, frozen=True, gc=False):
    """Pooling under a window; `p` is the norm of Lp pooling.

    With `indices` max pooling also returns the index of each maximum as `index_dtype` (""
    for the dtype of the input).
    """

    window: Window
    count_include_pad: bool = True
    p: int = 2
    indices: bool = False
    index_dtype: str = "int64"


class GlobalPool(Struct, frozen=True, gc=False):
    """Pooling over all positions; `p` is the norm of Lp pooling."""

    p: int = 2


class AdaptivePool(Struct, frozen=True, gc=False):
    """Pooling into a fixed number of bins per axis; None keeps that axis.

    With `indices` max pooling also returns the index of each maximum.
    """

    output: tuple[int | None, ...]
    indices: bool = False


class Pyramid(Struct, frozen=True, gc=False):
    """Spatial pyramid pooling: levels of 1, 2, 4 … bins per axis, concatenated to one vector."""

    levels: int
