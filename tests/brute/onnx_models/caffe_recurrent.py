"""ONNX models of Caffe's recurrent layers."""

from __future__ import annotations

from layerscope.graph import attributes as at
from tests.brute.engine import Model, Writer


def unrolled(kind: str) -> Writer:
    """Step after step: products, marks, gates."""

    def write(m: Model) -> str:
        a: at.Unrolled = m.attributes
        steps, batch = m.shape[:2]
        rows = m.node("Reshape", m.x, m.ints(steps, batch, -1))
        state = cell = m.tensor([0.0] * (batch * a.hidden), (batch, a.hidden))
        made = []
        for t in range(steps):
            x = m.node("Gather", rows, m.ints(t), axis=0)
            mark = m.node("Reshape", m.node("Gather", m.of(1), m.ints(t), axis=0), m.ints(batch, 1))
            x = m.node("Reshape", x, m.ints(batch, -1))
            joined = m.node("Gemm", x, "weight_x", "bias", transB=1)
            old = m.node("Gemm", m.node("Mul", state, mark), "weight_h", transB=1)
            joined = m.node("Add", joined, old)
            if a.static:
                joined = m.node("Add", joined, m.node("Gemm", m.of(2), "weight_static", transB=1))
            if kind == "caffe_rnn":
                state = m.node("Tanh", joined)
                made.append(m.node("Tanh", m.node("Gemm", state, "weight_o", "bias_o", transB=1)))
                continue
            i, f, o, g = m.several("Split", joined, outputs=4, axis=1, num_outputs=4)
            keep = m.node("Mul", m.node("Mul", m.node("Sigmoid", f), mark), cell)
            cell = m.node("Add", keep, m.node("Mul", m.node("Sigmoid", i), m.node("Tanh", g)))
            state = m.node("Mul", m.node("Sigmoid", o), m.node("Tanh", cell))
            made.append(state)
        apart = [m.node("Reshape", y, m.ints(1, batch, a.hidden)) for y in made]
        return m.node("Concat", *apart, axis=0)

    return write


MODELS: dict[str, Writer] = {
    "caffe_lstm": unrolled("caffe_lstm"),
    "caffe_rnn": unrolled("caffe_rnn"),
}
