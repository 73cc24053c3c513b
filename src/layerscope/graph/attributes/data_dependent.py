"""Attributes of ops whose output size depends on data."""

from __future__ import annotations

from msgspec import Struct


class Compress(Struct, frozen=True, gc=False):
    """Slices of an axis where the second input is True; without an axis, elements."""

    axis: int | None = None


class Unique(Struct, frozen=True, gc=False):
    """Unique slices of an axis, or elements; further `outputs` are indices and counts."""

    axis: int | None = None
    outputs: int = 1
