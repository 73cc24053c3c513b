"""Products, norms, activations, softmax, dropout."""

from __future__ import annotations

from msgspec import Struct


class Linear(Struct, frozen=True, gc=False):
    """A matrix applied to the last axis, or with `flatten` to all axes from `axis` on."""

    out_features: int
    bias: bool = True
    flatten: bool = False
    axis: int = 1


class MatMul(Struct, frozen=True, gc=False):
    """Product of two tensors over their last two axes, the rest broadcast."""

    transpose_a: bool = False
    transpose_b: bool = False


class BatchNorm(Struct, frozen=True, gc=False):
    """Normalisation by stored statistics per channel."""

    affine: bool = True
    eps: float = 1e-5
    momentum: float = 0.1
    scale: bool = True  # False: the affine part only shifts
    evaluated: bool = False  # by stored statistics even in training


class InstanceNorm(Struct, frozen=True, gc=False):
    """Normalisation of each channel over all positions, by statistics of the input."""

    affine: bool = False
    eps: float = 1e-5
    variance: bool = True  # False: the mean is taken away, and that is all


class LayerNorm(Struct, frozen=True, gc=False):
    """Normalisation over the axes from `axis` on, by statistics of the input."""

    axis: int = -1
    affine: bool = True
    bias: bool = True
    eps: float = 1e-5
    variance: bool = True  # False: the mean is taken away, and that is all


class GroupNorm(Struct, frozen=True, gc=False):
    """Normalisation over groups of channels and all positions."""

    groups: int
    affine: bool = True
    eps: float = 1e-5


class RMSNorm(Struct, frozen=True, gc=False):
    """Division by the root of the mean square over the axes from `axis` on."""

    axis: int = -1
    scale: bool = True
    eps: float = 1e-6


class LocalResponseNorm(Struct, frozen=True, gc=False):
    """Division by the energy of `size` neighbours, across channels or within each."""

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

    Values stand along `axes` axes from `axis` on: -1 for all that are left, 0 for a single value.
    A second input takes the place of the learned values, its axes those from `axis` on.
    """

    axis: int = 1
    bias: bool = False
    axes: int = 1


class Bias(Struct, frozen=True, gc=False):
    """Addition of a learned value per channel; `axes` and a second input as for Scale."""

    axis: int = 1
    axes: int = 1


class Power(Struct, frozen=True, gc=False):
    """(shift + scale · x) ^ power; what is neutral is not worked out."""

    power: float = 1.0
    scale: float = 1.0
    shift: float = 0.0


class Sum(Struct, frozen=True, gc=False):
    """Addition in which `scaled` of the inputs are first multiplied by a constant."""

    scaled: int = 0


class Activation(Struct, frozen=True, gc=False):
    """An element-wise function; `alpha` and `beta` are its constants where it has any."""

    alpha: float | None = None
    beta: float | None = None
    in_place: bool = False


class PReLU(Struct, frozen=True, gc=False):
    """ReLU with a learned slope below zero, one per channel or one in all."""

    shared: bool = False
    initial: float = 0.25


class Distance(Struct, frozen=True, gc=False):
    """The p-norm of the difference of every pair of rows."""

    p: float = 2.0


class Softmax(Struct, frozen=True, gc=False):
    """Softmax along one axis, or with `tail` over all axes from it on together."""

    axis: int = 1
    tail: bool = False


class Dropout(Struct, frozen=True, gc=False):
    """Random zeros in training, nothing at inference."""

    p: float = 0.5
    in_place: bool = False
    evaluated: bool = False  # off even in training
    channels: bool = False  # whole channels are zeroed
