"""Attributes of elementwise ops."""

from __future__ import annotations

from msgspec import Struct


class Power(Struct, frozen=True, gc=False):
    """(shift + scale · x) ^ power; neutral constants cost nothing."""

    power: float = 1.0
    scale: float = 1.0
    shift: float = 0.0


class Sum(Struct, frozen=True, gc=False):
    """Addition in which `scaled` of the inputs are first multiplied by a constant."""

    scaled: int = 0
