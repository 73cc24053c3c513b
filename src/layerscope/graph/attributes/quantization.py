"""Attributes of quantization and casts."""

from __future__ import annotations

from msgspec import Struct


class Quantize(Struct, frozen=True, gc=False):
    """Quantization to `dtype`, or dequantization from it."""

    dtype: str = "int8"
    per_channel: bool = False


class Cast(Struct, frozen=True, gc=False):
    """Cast to another dtype."""

    dtype: str
