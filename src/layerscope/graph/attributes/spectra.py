"""Fourier transforms. Complex numbers are the last axis: two, or one where they are real."""

from __future__ import annotations

from msgspec import Struct


class DFT(Struct, frozen=True, gc=False):
    """The transform along one axis, cut or padded to `length` (0: as it is).

    With `onesided` only the half that real numbers need: made, or read by the inverse.
    """

    axis: int = -2
    inverse: bool = False
    onesided: bool = False
    length: int = 0


class STFT(Struct, frozen=True, gc=False):
    """Transforms of frames `step` apart of N x T x (1 or 2), weighted by a second input."""

    frame: int
    step: int
    onesided: bool = True
