"""Attributes of top-k, cumulative sums, distances and embedding bags."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class TopK(Struct, frozen=True, gc=False):
    """The k largest elements along one axis, and their indices."""

    k: int
    axis: int = -1


class CumSum(Struct, frozen=True, gc=False):
    """Sum, product or extreme of all elements up to each along one axis."""

    axis: int = -1


class Distance(Struct, frozen=True, gc=False):
    """The p-norm of the difference of every pair of rows."""

    p: float = 2.0


class EmbeddingBag(Struct, frozen=True, gc=False):
    """A table of `rows` vectors looked up by index (first input), those of each bag combined.

    The second input has the start of each bag, a third one the weight of each index.
    """

    rows: int
    features: int
    bags: int
    mode: Literal["sum", "mean", "max"] = "sum"
