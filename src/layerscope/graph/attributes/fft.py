"""Fourier transforms. Complex numbers are the last axis: two, or one where they are real."""

from __future__ import annotations

from typing import Literal

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


class FFT(Struct, frozen=True, gc=False):
    """The transform of complex numbers along `axes`, each in turn; `length` is the last one's.

    `real` says which side has real numbers, of which only the half that is needed is made or read.
    """

    axes: tuple[int, ...]
    real: Literal["", "input", "output"] = ""
    length: int = 0  # of the last axis, where the output is real; 0: as it is
    scaled: bool = False  # every number of the result is divided
