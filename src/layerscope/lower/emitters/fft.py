"""Fourier transforms."""

from __future__ import annotations

from layerscope.graph.attributes import DFT, STFT
from layerscope.lower.builder import NO_COMPLEX, Emitter, NodeEmitter


def dft(node: NodeEmitter) -> str:
    a: DFT = node.attributes or DFT()
    if a.inverse and a.onesided:
        raise node.refuse("engines do not support the inverse of a one-sided transform")
    length = node.number(a.length, "int64") if a.length else ""
    axis = node.number(a.axis, "int64")
    return node.add("DFT", node.x, length, axis, inverse=int(a.inverse), onesided=int(a.onesided))


def stft(node: NodeEmitter) -> str:
    a: STFT = node.attributes
    window = node.operand(1, node.dtype) if len(node.inputs) == 2 else ""
    step, frame = node.number(a.step, "int64"), node.number(a.frame, "int64")
    return node.add("STFT", node.x, step, window, frame, onesided=int(a.onesided))


EMITTERS: dict[str, Emitter] = {"dft": dft, "stft": stft}

REFUSED = {"fft": NO_COMPLEX}
