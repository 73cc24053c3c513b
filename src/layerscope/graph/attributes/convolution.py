"""Attributes of convolutions."""

from __future__ import annotations

from msgspec import Struct

from layerscope.graph.attributes.window import Window


class Conv(Struct, frozen=True, gc=False):
    """Convolution; the number of input channels follows from the input."""

    window: Window
    out_channels: int
    groups: int = 1
    bias: bool = True


class DeformConv(Struct, frozen=True, gc=False):
    """Deformable convolution: the second input has offsets, an optional third one weights.

    Offsets are N x (offset_groups · positions · 2) x out, weights N x (offset_groups · positions) x
    out.
    """

    window: Window
    out_channels: int
    groups: int = 1
    bias: bool = True
    offset_groups: int = 1


class TransposedConv(Struct, frozen=True, gc=False):
    """Transposed convolution; the window is that of the convolution it transposes."""

    window: Window
    out_channels: int
    groups: int = 1
    bias: bool = True
    output_padding: tuple[int, ...] = ()


class Im2Col(Struct, frozen=True, gc=False):
    """The elements under each window position, stored along the channels."""

    window: Window
