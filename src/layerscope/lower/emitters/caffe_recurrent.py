"""Caffe's recurrent layers, unrolled into steps as Caffe does."""

from __future__ import annotations

from layerscope.graph.attributes import Unrolled
from layerscope.graph.types import elements
from layerscope.lower.builder import Emitter, NodeEmitter
from layerscope.lower.emitters.recurrent import lstm_cell, stacked


def _entries(node: NodeEmitter) -> list[str]:
    """For each step, the product of the input plus that of the static input."""
    a: Unrolled = node.attributes
    steps, batch = node.shape[:2]
    flat = node.reshape(node.x, (steps * batch, elements(node.shape[2:])))
    wide = node.add("Gemm", flat, node.param("weight_x"), node.param("bias"), transB=1)
    entries = node.reshape(wide, (steps, batch, -1))
    if a.static:
        static = node.reshape(node.inputs[2], (batch, -1))
        once = node.add("Gemm", static, node.param("weight_static"), transB=1)
        entries = node.add("Add", entries, once)
    return _steps(node, entries)


def _steps(node: NodeEmitter, x: str) -> list[str]:
    """Every step of T x N x …, without its first axis."""
    steps = node.shape[0]
    rows = (
        node.add_multi("Split", x, node.ints(*[1] * steps), outputs=steps, axis=0)
        if steps > 1
        else (x,)
    )
    return [node.add("Squeeze", row, node.ints(0)) for row in rows]


def unrolled(kind: str) -> Emitter:
    """Emitter that multiplies the state before each step by the sequence markers."""

    def emit(node: NodeEmitter) -> str:
        a: Unrolled = node.attributes
        steps, batch = node.shape[:2]
        marks = _steps(node, node.reshape(node.operand(1, node.dtype), (steps, batch, 1)))
        h = c = node.full((batch, a.hidden), 0.0)
        outputs = []
        for entry, mark in zip(_entries(node), marks, strict=True):
            kept = node.add("Mul", h, mark)
            deep = node.add("Gemm", kept, node.param("weight_h"), transB=1)
            gates = node.add("Add", entry, deep)
            if kind == "caffe_lstm":
                h, c = lstm_cell(node, gates, node.add("Mul", c, mark), (0, 1, 2, 3))
                y = h
            else:
                h = node.add("Tanh", gates)
                y = node.add("Gemm", h, node.param("weight_o"), node.param("bias_o"), transB=1)
                y = node.add("Tanh", y)
            outputs.append(node.add("Unsqueeze", y, node.ints(0)))
        return stacked(node, outputs)

    return emit


EMITTERS: dict[str, Emitter] = {kind: unrolled(kind) for kind in ("caffe_lstm", "caffe_rnn")}
