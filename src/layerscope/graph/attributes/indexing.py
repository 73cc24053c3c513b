"""Attributes of gather, scatter, embeddings and other ops by index."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Gather(Struct, frozen=True, gc=False):
    """Slices of one axis by index, or single elements along it if `elements`."""

    axis: int = 0
    elements: bool = False


class GatherND(Struct, frozen=True, gc=False):
    """Slices by index tuples, the last axis of the second input, after `batch` axes."""

    batch: int = 0


class OneHot(Struct, frozen=True, gc=False):
    """A new axis of `depth` with a one at every index; `dtype` "" is that of the graph."""

    depth: int
    axis: int = -1
    dtype: str = ""


Combining = Literal["", "mul", "max", "min", "mean"]


class Scatter(Struct, frozen=True, gc=False):
    """Writing updates (third input) into a copy of the first input at indices along `axis`.

    With `add` updates are added to the elements there, or combined with them by `reduce`.
    """

    axis: int = 0
    add: bool = False
    reduce: Combining = ""


class Embedding(Struct, frozen=True, gc=False):
    """A table of `rows` vectors of `features`, looked up by index."""

    rows: int
    features: int


class Table(Struct, frozen=True, gc=False):
    """A learned array such as a position embedding, repeated for the batch if `batched`."""

    shape: tuple[int, ...]
    batched: bool = False
