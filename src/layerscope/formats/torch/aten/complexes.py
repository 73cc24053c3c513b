"""Complex numbers and Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layerscope.formats.torch.aten.elements import number
from layerscope.formats.torch.lowering import Lowering, Refused, TensorRef, Unsupported
from layerscope.graph import attributes as at
from layerscope.ops.complex import is_complex
from layerscope.ops.spec import REAL_PARTS


def part(d: Lowering, x: TensorRef) -> TensorRef:
    """The real or the imaginary part of complex numbers, a view."""
    return d.add("view", x, at=at.DeclaredOutputs((x.shape,), (REAL_PARTS[x.dtype],)))


def real(d: Lowering, self: TensorRef) -> TensorRef:
    return part(d, self) if is_complex(self.dtype) else self


def imag(d: Lowering, self: TensorRef) -> TensorRef:
    if not is_complex(self.dtype):
        raise Refused(f"the imaginary part of {self.dtype}")
    return part(d, self)


def complex_(d: Lowering, real: TensorRef, imag: TensorRef) -> TensorRef:
    if real.dtype != imag.dtype:
        raise Refused(f"complex numbers of {real.dtype} and {imag.dtype}")
    return d.add("complex", real, imag)


def polar(d: Lowering, abs: TensorRef, angle: TensorRef) -> TensorRef:
    """The size times cosine and sine of the angle."""
    sides = [d.add("mul", abs, d.add(op, angle)) for op in ("cos", "sin")]
    return d.add("complex", *sides)


def angle(d: Lowering, self: TensorRef) -> TensorRef:
    """Of real numbers 0 or π, by their sign."""
    if is_complex(self.dtype):
        return d.add("atan2", part(d, self), part(d, self))
    floating = self.dtype if self.dtype.startswith(("fp", "bf")) else d.floating
    return d.add("where", d.add("compare", self), number(d, floating), number(d, floating))


def conj_physical(d: Lowering, self: TensorRef) -> TensorRef:
    """The imaginary part negated."""
    if not is_complex(self.dtype):
        return d.add("identity", self)
    return d.add("complex", part(d, self), d.add("neg", part(d, self)))


def _axes(x: TensorRef, dim: Sequence[int]) -> tuple[int, ...]:
    if not x.rank:
        raise Unsupported("a transform of a number")
    return tuple([axis % x.rank for axis in dim])


def fft_r2c(
    d: Lowering, self: TensorRef, dim: Sequence[int], normalization: int, onesided: bool, **_: Any
) -> TensorRef:
    told = at.FFT(_axes(self, dim), "input" if onesided else "", scaled=normalization != 0)
    return d.add("fft", self, at=told)


def fft_c2r(
    d: Lowering,
    self: TensorRef,
    dim: Sequence[int],
    normalization: int,
    last_dim_size: int,
    **_: Any,
) -> TensorRef:
    told = at.FFT(_axes(self, dim), "output", last_dim_size, scaled=normalization != 0)
    return d.add("fft", self, at=told)


def fft_c2c(
    d: Lowering, self: TensorRef, dim: Sequence[int], normalization: int, forward: bool, **_: Any
) -> TensorRef:
    if not dim:
        return d.add("identity", self)
    return d.add("fft", self, at=at.FFT(_axes(self, dim), scaled=normalization != 0))


TABLE: dict[str, Any] = {
    "real": real,
    "imag": imag,
    "complex": complex_,
    "polar": polar,
    "angle": angle,
    "conj_physical": conj_physical,
    "_conj_physical": conj_physical,
    "_fft_r2c": fft_r2c,
    "_fft_c2r": fft_c2r,
    "_fft_c2c": fft_c2c,
}
