"""Attributes of ops whose outputs are declared by a reader, and of nodes without an op."""

from __future__ import annotations

from msgspec import Struct


class DeclaredOutputs(Struct, frozen=True, gc=False):
    """Shapes and dtypes of outputs that the reader of the network has computed."""

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]


class CustomCost(Struct, frozen=True, gc=False):
    """Outputs and operation counts of an operator with a user-defined cost."""

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    mac: int = 0
    add: int = 0
    mul: int = 0
    comp: int = 0
    div: int = 0
    exp: int = 0
    estimate: str = ""  # why the counts are an estimate; "": they are exact


class Opaque(Struct, frozen=True, gc=False):
    """Outputs of a node whose op has no OpSpec; None for a shape that is unknown."""

    shapes: tuple[tuple[int, ...] | None, ...]
    dtypes: tuple[str, ...] = ()  # default: that of the first input
    declared: tuple[bool, ...] = ()  # whether a shape is only declared by the file
    why: str = ""  # why it has no costs; default: the op has no OpSpec
    infer: str = (
        ""  # name in ops.uncounted_shapes.OUTPUTS of the shape function, instead of `shapes`
    )
    sizes: tuple[int, ...] = ()  # arguments of that function besides the input shapes
