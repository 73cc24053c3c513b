"""What the way through a network decides, not its numbers."""

from __future__ import annotations

from msgspec import Struct


class DeclaredOutputs(Struct, frozen=True, gc=False):
    """Shapes and number types of outputs that whoever read the network worked out."""

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]


class CustomCost(Struct, frozen=True, gc=False):
    """Outputs and operations of an operator that somebody told us how to count."""

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    mac: int = 0
    add: int = 0
    mul: int = 0
    comp: int = 0
    div: int = 0
    exp: int = 0
    estimate: str = ""  # why the counts are a bound, if they are
