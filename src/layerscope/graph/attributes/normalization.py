"""Attributes of normalization layers, scale and bias."""

from __future__ import annotations

from msgspec import Struct


class BatchNorm(Struct, frozen=True, gc=False):
    """Normalization by running statistics per channel."""

    affine: bool = True
    eps: float = 1e-5
    momentum: float = 0.1
    scale: bool = True  # False: the affine part only shifts
    evaluated: bool = False  # uses running statistics even in training


class InstanceNorm(Struct, frozen=True, gc=False):
    """Normalization of each channel over all positions, with statistics of the input."""

    affine: bool = False
    eps: float = 1e-5
    variance: bool = True  # False: subtract the mean only


class LayerNorm(Struct, frozen=True, gc=False):
    """Normalization over the axes from `axis` on, with statistics of the input."""

    axis: int = -1
    affine: bool = True
    bias: bool = True
    eps: float = 1e-5
    variance: bool = True  # False: subtract the mean only


class GroupNorm(Struct, frozen=True, gc=False):
    """Normalization over groups of channels and all positions."""

    groups: int
    affine: bool = True
    eps: float = 1e-5


class RMSNorm(Struct, frozen=True, gc=False):
    """Division by the root of the mean square over the axes from `axis` on."""

    axis: int = -1
    scale: bool = True
    eps: float = 1e-6


class LocalResponseNorm(Struct, frozen=True, gc=False):
    """Division by a power of the sum of squares of `size` neighbours, across or within channels."""

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0
    within_channel: bool = False


class L2Norm(Struct, frozen=True, gc=False):
    """Division by the Euclidean norm over `axes`, with an optional learned scale per channel."""

    axes: tuple[int, ...] = (1,)
    scale: bool = False
    shared_scale: bool = False
    eps: float = 1e-10


class Scale(Struct, frozen=True, gc=False):
    """Multiplication by a learned value per channel, with an optional learned shift.

    The values span `axes` axes from `axis` on: -1 for all remaining axes, 0 for a single value.
    A second input replaces the learned values; its axes are those from `axis` on.
    """

    axis: int = 1
    bias: bool = False
    axes: int = 1


class Bias(Struct, frozen=True, gc=False):
    """Addition of a learned value per channel; `axes` and a second input as for Scale."""

    axis: int = 1
    axes: int = 1
