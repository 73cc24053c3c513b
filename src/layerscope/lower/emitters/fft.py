"""Fourier transforms."""

from __future__ import annotations

from layerscope.graph.attributes import DFT, STFT
from layerscope.lower.builder import Site, Writer


def dft(s: Site) -> str:
    a: DFT = s.attributes or DFT()
    if a.inverse and a.onesided:
        raise s.refuse("the inverse of half a transform, which engines do not run")
    length = s.number(a.length, "int64") if a.length else ""
    axis = s.number(a.axis, "int64")
    return s.add("DFT", s.x, length, axis, inverse=int(a.inverse), onesided=int(a.onesided))


def stft(s: Site) -> str:
    a: STFT = s.attributes
    window = s.operand(1, s.dtype) if len(s.inputs) == 2 else ""
    step, frame = s.number(a.step, "int64"), s.number(a.frame, "int64")
    return s.add("STFT", s.x, step, window, frame, onesided=int(a.onesided))


WRITERS: dict[str, Writer] = {"dft": dft, "stft": stft}
