"""Attributes of activations and softmax."""

from __future__ import annotations

from msgspec import Struct


class Activation(Struct, frozen=True, gc=False):
    """An element-wise function; `alpha` and `beta` are its constants, if it has any."""

    alpha: float | None = None
    beta: float | None = None
    in_place: bool = False


class PReLU(Struct, frozen=True, gc=False):
    """ReLU with a learned slope below zero, one per channel or one shared by all."""

    shared: bool = False
    initial: float = 0.25


class Softmax(Struct, frozen=True, gc=False):
    """Softmax along one axis, or with `tail` over all axes from it on, flattened."""

    axis: int = 1
    tail: bool = False
