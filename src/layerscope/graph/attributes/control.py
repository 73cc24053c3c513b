"""What the way through a network decides, not its numbers."""

from __future__ import annotations

from msgspec import Struct


class Told(Struct, frozen=True, gc=False):
    """Shapes and number types of outputs that whoever read the network worked out."""

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
