"""Attributes of Fourier transforms."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class DFT(Struct, frozen=True, gc=False):
    """Transform along one axis, cropped or padded to `length` (0: unchanged).

    The last axis is real and imaginary part, or real part only. With `onesided` only the half that
    real input needs is computed, or read by the inverse.
    """

    axis: int = -2
    inverse: bool = False
    onesided: bool = False
    length: int = 0


class STFT(Struct, frozen=True, gc=False):
    """Transforms of frames `step` apart of N x T x (1 or 2); the second input is the window."""

    frame: int
    step: int
    onesided: bool = True


class FFT(Struct, frozen=True, gc=False):
    """Transform of complex numbers along `axes`, one after the other.

    If input or output is `real`, only the non-redundant half of the other side is stored.
    """

    axes: tuple[int, ...]
    real: Literal["", "input", "output"] = ""
    length: int = 0  # of the last axis if the output is real; 0: derived from the input
    scaled: bool = False  # every element of the result is divided
