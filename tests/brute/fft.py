"""Loops and cases of Fourier transforms."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable

from layerscope.graph import attributes as at
from layerscope.graph.attributes import DFT, STFT
from tests.brute.arrays import Array, Index, Run, split_axes
from tests.brute.case import Case
from tests.brute.scalar import Scalar

Complex = tuple[Scalar, Scalar]


def _fast(numbers: list[Complex], sign: int) -> list[Complex]:
    """Halves of even and odd places, joined by butterflies; the turns are made beforehand."""
    n = len(numbers)
    if n == 1:
        return numbers
    even, odd = _fast(numbers[::2], sign), _fast(numbers[1::2], sign)
    made: list[Complex] = [*even, *odd]
    for k in range(n // 2):
        turn = cmath.exp(sign * 2j * math.pi * k / n)
        (a, b), (c, d) = even[k], odd[k]
        real, imaginary = c * turn.real - d * turn.imag, c * turn.imag + d * turn.real
        made[k] = (a + real, b + imaginary)
        made[k + n // 2] = (a - real, b - imaginary)
    return made


def _complex(run: Run, x: Array, index: Index) -> Complex:
    return x[(*index, 0)], x[(*index, 1)] if x.shape[-1] == 2 else run.number(0.0)


def dft(run: Run) -> list[Array]:
    a: DFT = run.attributes
    x = run.x
    axis = a.axis % len(x.shape)
    n = a.length or x.shape[axis]
    kept = n // 2 + 1 if a.onesided else n
    cells: dict[Index, Scalar] = {}
    for row in split_axes(x.shape[:-1], [axis]):
        numbers = [_complex(run, x, index) for index in row[:n]]
        numbers += [(run.number(0.0), run.number(0.0))] * (n - len(numbers))
        made = _fast(numbers, 1 if a.inverse else -1)
        if a.inverse:
            made = [(real / float(n), imaginary / float(n)) for real, imaginary in made]
        for k, parts in enumerate(made[:kept]):
            place = (*row[0][:axis], k, *row[0][axis + 1 :])
            cells.update({(*place, part): number for part, number in enumerate(parts)})
    return [Array((*x.shape[:axis], kept, *x.shape[axis + 1 : -1], 2), cells)]


def stft(run: Run) -> list[Array]:
    a: STFT = run.attributes
    x, *windows = run.inputs
    kept = a.frame // 2 + 1 if a.onesided else a.frame
    cells: dict[Index, Scalar] = {}
    starts = [t for t in range(0, x.shape[1], a.step) if t + a.frame <= x.shape[1]]
    for n in range(x.shape[0]):
        for f, start in enumerate(starts):
            frame = []
            for t in range(a.frame):
                parts = [x[(n, start + t, part)] for part in range(x.shape[2])]
                parts = [part * windows[0][(t,)] for part in parts] if windows else parts
                frame.append((parts[0], parts[1] if len(parts) == 2 else run.number(0.0)))
            for k, made in enumerate(_fast(frame, -1)[:kept]):
                cells.update({(n, f, k, part): number for part, number in enumerate(made)})
    return [Array((x.shape[0], len(starts), kept, 2), cells)]


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "dft": dft,
    "stft": stft,
}

CASES: list[Case] = [
    Case("dft", at.DFT(1), ((2, 8, 1),), "real"),
    Case("dft", at.DFT(), ((2, 4, 2),), "complex"),
    Case("dft", at.DFT(1, onesided=True), ((2, 8, 3, 1),), "onesided"),
    Case("dft", at.DFT(1, inverse=True), ((1, 4, 2),), "inverse"),
    Case("dft", at.DFT(1, length=8), ((1, 5, 1),), "padded"),
    Case("stft", at.STFT(4, 2), ((2, 9, 1), (4,)), "weighted"),
    Case("stft", at.STFT(8, 3), ((1, 16, 1),), "plain"),
]  # fmt: skip
