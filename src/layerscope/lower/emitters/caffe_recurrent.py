"""Caffe's recurrent layers, step by step as it unrolls them."""

from __future__ import annotations

from layerscope.graph.attributes import Unrolled
from layerscope.graph.types import elements
from layerscope.lower.builder import Site, Writer
from layerscope.lower.emitters.recurrent import lstm_cell, stacked


def _entries(s: Site) -> list[str]:
    """What each step adds to the product of its state: that of the input, and of the static one."""
    a: Unrolled = s.attributes
    steps, batch = s.shape[:2]
    flat = s.reshape(s.x, (steps * batch, elements(s.shape[2:])))
    wide = s.add("Gemm", flat, s.param("weight_x"), s.param("bias"), transB=1)
    entries = s.reshape(wide, (steps, batch, -1))
    if a.static:
        static = s.reshape(s.inputs[2], (batch, -1))
        once = s.add("Gemm", static, s.param("weight_static"), transB=1)
        entries = s.add("Add", entries, once)
    return _steps(s, entries)


def _steps(s: Site, x: str) -> list[str]:
    """Every step of T x N x …, without its first axis."""
    steps = s.shape[0]
    rows = s.several("Split", x, s.ints(*[1] * steps), outputs=steps, axis=0) if steps > 1 else (x,)
    return [s.add("Squeeze", row, s.ints(0)) for row in rows]


def unrolled(kind: str) -> Writer:
    """Marks multiply the states a step begins with."""

    def write(s: Site) -> str:
        a: Unrolled = s.attributes
        steps, batch = s.shape[:2]
        marks = _steps(s, s.reshape(s.operand(1, s.dtype), (steps, batch, 1)))
        h = c = s.full((batch, a.hidden), 0.0)
        made = []
        for entry, mark in zip(_entries(s), marks, strict=True):
            kept = s.add("Mul", h, mark)
            deep = s.add("Gemm", kept, s.param("weight_h"), transB=1)
            gates = s.add("Add", entry, deep)
            if kind == "caffe_lstm":
                h, c = lstm_cell(s, gates, s.add("Mul", c, mark), (0, 1, 2, 3))
                y = h
            else:
                h = s.add("Tanh", gates)
                y = s.add("Gemm", h, s.param("weight_o"), s.param("bias_o"), transB=1)
                y = s.add("Tanh", y)
            made.append(s.add("Unsqueeze", y, s.ints(0)))
        return stacked(s, made)

    return write


WRITERS: dict[str, Writer] = {kind: unrolled(kind) for kind in ("caffe_lstm", "caffe_rnn")}
