"""Fourier transforms, as fast ones do them.

Of `dft` and `stft` the last axis holds real and imaginary parts; numbers of `fft` are complex.
"""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.graph.attributes import DFT, FFT, STFT
from layerscope.graph.types import Shape, elements
from layerscope.ops.access_map import SAME, AccessMap, WindowMap, keep
from layerscope.ops.autograd import nothing
from layerscope.ops.spec import FREE, Call, Ops, OpSpec, axis_of

FAST = "5·n·⌈log2 n⌉ operations for n numbers, as a fast Fourier transform takes"


def _transform(n: int) -> Ops:
    """n/2 butterflies on each of log2(n) levels: mul 4, add 6."""
    levels = (n - 1).bit_length()
    return Ops(mul=2, add=3) * (n * levels)


def _line(call: Call) -> tuple[int, int]:
    """The axis, and how many numbers are transformed together."""
    a: DFT = call.attributes or DFT()
    axis = axis_of(a.axis, len(call.x))
    if axis == len(call.x) - 1 or call.x[-1] not in (1, 2):
        raise ShapeError(
            f"a transform of {call.x} along axis {axis}, expected one or two behind it"
        )
    whole = 2 * (call.x[axis] - 1) if a.inverse and a.onesided else call.x[axis]
    return axis, a.length or whole


def _dft_shape(call: Call) -> tuple[Shape, ...]:
    a: DFT = call.attributes or DFT()
    axis, n = _line(call)
    if n < 1:
        raise ShapeError(f"a transform of {n} numbers, expected at least 1")
    length = n // 2 + 1 if a.onesided and not a.inverse else n
    parts = 1 if a.onesided and a.inverse else 2
    return ((*call.x[:axis], length, *call.x[axis + 1 : -1], parts),)


def _dft_ops(call: Call) -> Ops:
    a: DFT = call.attributes or DFT()
    axis, n = _line(call)
    rows = elements(call.y) // (call.y[axis] * call.y[-1])
    return (_transform(n) + Ops(div=2 * n if a.inverse else 0)) * rows


def _dft_access(call: Call) -> tuple[AccessMap, ...]:
    axis, _ = _line(call)
    return (keep(tuple(n for n in range(len(call.x) - 1) if n != axis)),)


def _fft_shape(call: Call) -> tuple[Shape, ...]:
    a: FFT = call.attributes
    shape = list(call.x)
    axes = [axis_of(axis, len(shape)) for axis in a.axes]
    if not axes or len({*axes}) < len(axes):
        raise ShapeError(f"a transform of {call.x} along axes {a.axes}")
    if a.real == "input":
        shape[axes[-1]] = shape[axes[-1]] // 2 + 1
    elif a.real == "output":
        if shape[axes[-1]] != a.length // 2 + 1:
            raise ShapeError(f"a transform of {call.x} to {a.length} real numbers")
        shape[axes[-1]] = a.length
    return (tuple(shape),)


def _fft_ops(call: Call) -> Ops:
    """Along every axis in turn. The axis of real numbers is the first written or the last read.

    The others are transformed on the half that is kept.
    """
    a: FFT = call.attributes
    half = call.y if a.real == "input" else call.x
    total = FREE
    for axis in a.axes:
        last = axis_of(axis, len(call.x)) == axis_of(a.axes[-1], len(call.x))
        n = (a.length or call.x[axis]) if last else call.x[axis]
        total += _transform(n) * (elements(half) // max(half[axis], 1))
    if a.scaled:
        total += Ops(div=(1 if a.real == "output" else 2) * call.out_elements)
    return total


def _fft_access(call: Call) -> tuple[AccessMap, ...]:
    axes = {axis_of(axis, len(call.x)) for axis in call.attributes.axes}
    return (keep(tuple(n for n in range(len(call.x)) if n not in axes)),)


def _stft_shape(call: Call) -> tuple[Shape, ...]:
    a: STFT = call.attributes
    if len(call.x) != 3 or call.x[2] not in (1, 2):
        raise ShapeError(f"transforms of frames of {call.x}, expected N x T x 1 or N x T x 2")
    if a.frame < 1 or a.step < 1 or a.frame > call.x[1]:
        raise ShapeError(f"frames of {a.frame}, {a.step} apart, of {call.x[1]} numbers")
    if len(call.inputs) == 2 and call.inputs[1] != (a.frame,):
        raise ShapeError(f"a window of {call.inputs[1]} for frames of {a.frame}")
    frames = (call.x[1] - a.frame) // a.step + 1
    return ((call.x[0], frames, a.frame // 2 + 1 if a.onesided else a.frame, 2),)


def _stft_ops(call: Call) -> Ops:
    a: STFT = call.attributes
    weighted = Ops(mul=a.frame * call.x[2] if len(call.inputs) == 2 else 0)
    return (_transform(a.frame) + weighted) * elements(call.y[:2])


def _stft_access(call: Call) -> tuple[AccessMap, ...]:
    a: STFT = call.attributes
    signal: AccessMap = {0: (0, SAME), 1: (1, WindowMap(taps=a.frame, stride=a.step))}
    window: AccessMap = {}
    return (signal, window)[: len(call.inputs)]


SPECS = {
    "fft": OpSpec(
        family="spectral",
        attributes=FFT,
        shape=_fft_shape,
        ops=_fft_ops,
        access_map=_fft_access,
        backward=lambda call: (_fft_ops(call), FREE),
        saved_for_backward=nothing,
        out_dtypes=("transformed",),
        estimate=FAST,
    ),
    "dft": OpSpec(
        family="spectral",
        attributes=DFT,
        shape=_dft_shape,
        ops=_dft_ops,
        access_map=_dft_access,
        backward=lambda call: (_dft_ops(call), FREE),
        saved_for_backward=nothing,
        estimate=FAST,
    ),
    "stft": OpSpec(
        family="spectral",
        attributes=STFT,
        shape=_stft_shape,
        ops=_stft_ops,
        access_map=_stft_access,
        backward=lambda call: (_stft_ops(call), FREE),
        saved_for_backward=nothing,
        arity=(1, 2),
        estimate=FAST,
    ),
}
