"""Attributes of reshapes, permutations, copies, padding and dropout."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from layerscope.graph.attributes.window import Pads

Filling = Literal["constant", "reflect", "edge", "wrap"]


class Reshape(Struct, frozen=True, gc=False):
    """New shape for the same elements; 0 keeps an axis, one size may be -1 for the rest.

    It replaces `axes` axes from `axis` on (-1: all remaining); a negative `axis` counts from the
    end, where -1 is the position after the last axis.
    """

    shape: tuple[int, ...]
    axis: int = 0
    axes: int = -1


class Flatten(Struct, frozen=True, gc=False):
    """Merging the axes from `start` to `end` into one."""

    start: int = 1
    end: int = -1


class Permute(Struct, frozen=True, gc=False):
    """A new order of the axes."""

    order: tuple[int, ...]


class Pad(Struct, frozen=True, gc=False):
    """Elements added before and after each axis; negative numbers crop."""

    pads: Pads
    mode: Filling = "constant"


class Expand(Struct, frozen=True, gc=False):
    """Broadcast of axes of size 1 to `shape`; 0 or -1 keeps an axis."""

    shape: tuple[int, ...]


class Tile(Struct, frozen=True, gc=False):
    """Repetition `times` along one axis."""

    axis: int = 1
    times: int = 1


class Repeat(Struct, frozen=True, gc=False):
    """Repetition along every axis."""

    times: tuple[int, ...]


class Flip(Struct, frozen=True, gc=False):
    """Reversal of the elements along these axes."""

    axes: tuple[int, ...]


class ChannelShuffle(Struct, frozen=True, gc=False):
    """Channel shuffle: the channels of `groups` groups interleaved."""

    groups: int


class ReverseSequence(Struct, frozen=True, gc=False):
    """Reversal of the first steps of every sequence; the second input has the lengths."""

    batch_axis: int = 1
    time_axis: int = 0


class Dropout(Struct, frozen=True, gc=False):
    """Random zeros in training, nothing at inference."""

    p: float = 0.5
    in_place: bool = False
    evaluated: bool = False  # off even in training
    channels: bool = False  # zeros whole channels
