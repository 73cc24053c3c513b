"""ONNX models of Fourier transforms."""

from __future__ import annotations

from layerscope.graph.attributes import DFT, STFT
from tests.brute.engine import Model, Writer


def dft(m: Model) -> str:
    a: DFT = m.attributes
    length = m.node("Squeeze", m.ints(a.length)) if a.length else ""
    axis = m.node("Squeeze", m.ints(a.axis))
    return m.node("DFT", m.x, length, axis, inverse=int(a.inverse), onesided=int(a.onesided))


def stft(m: Model) -> str:
    a: STFT = m.attributes
    step, frame = (m.node("Squeeze", m.ints(size)) for size in (a.step, a.frame))
    window = m.of(1) if len(m.inputs) == 2 else ""
    return m.node("STFT", m.x, step, window, frame, onesided=int(a.onesided))


MODELS: dict[str, Writer] = {
    "dft": dft,
    "stft": stft,
}
