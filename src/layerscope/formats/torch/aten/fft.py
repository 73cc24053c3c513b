"""Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.formats.torch.aten.signatures import OneOutput
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.graph import attributes as at


def _axes(x: TensorRef, dim: Sequence[int]) -> tuple[int, ...]:
    if not x.rank:
        raise Unsupported("a transform of a tensor of rank 0")
    return tuple([axis % x.rank for axis in dim])


def fft_r2c(
    d: Lowering,
    self: TensorRef,
    dim: Sequence[int],
    normalization: int,
    onesided: bool,
    **_: object,
) -> TensorRef:
    attrs = at.FFT(_axes(self, dim), "input" if onesided else "", scaled=normalization != 0)
    return d.add("fft", self, at=attrs)


def fft_c2r(
    d: Lowering,
    self: TensorRef,
    dim: Sequence[int],
    normalization: int,
    last_dim_size: int,
    **_: object,
) -> TensorRef:
    attrs = at.FFT(_axes(self, dim), "output", last_dim_size, scaled=normalization != 0)
    return d.add("fft", self, at=attrs)


def fft_c2c(
    d: Lowering, self: TensorRef, dim: Sequence[int], normalization: int, forward: bool, **_: object
) -> TensorRef:
    if not dim:
        return d.add("identity", self)
    return d.add("fft", self, at=at.FFT(_axes(self, dim), scaled=normalization != 0))


TABLE: dict[str, OneOutput] = {
    "_fft_r2c": fft_r2c,
    "_fft_c2r": fft_c2r,
    "_fft_c2c": fft_c2c,
}
