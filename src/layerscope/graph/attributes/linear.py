"""Attributes of matrix products and einsum."""

from __future__ import annotations

from msgspec import Struct


class Linear(Struct, frozen=True, gc=False):
    """Matrix product along the last axis, or with `flatten` along all axes from `axis` on."""

    out_features: int
    bias: bool = True
    flatten: bool = False
    axis: int = 1


class MatMul(Struct, frozen=True, gc=False):
    """Product of two tensors over their last two axes, the rest broadcast."""

    transpose_a: bool = False
    transpose_b: bool = False


class Einsum(Struct, frozen=True, gc=False):
    """Product of tensors in Einstein notation, such as `bij,bjk->bik`."""

    equation: str
