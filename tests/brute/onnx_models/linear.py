"""ONNX models of matrix products and einsum."""

from __future__ import annotations

from layerscope.graph.attributes import Linear, MatMul
from tests.brute.engine import Model, Writer


def linear(m: Model) -> str:
    a: Linear = m.attributes
    if a.flatten or len(m.shape) == 2:
        axis = a.axis % len(m.shape) if a.flatten else 1
        y = m.node("Gemm", m.node("Flatten", m.x, axis=axis), *m.params, transB=1)
        return m.node("Reshape", y, m.ints(*m.shape[:axis], a.out_features))
    y = m.node("MatMul", m.x, m.node("Transpose", "weight", perm=[1, 0]))
    return m.node("Add", y, "bias") if a.bias else y


def matmul(m: Model) -> str:
    a: MatMul = m.attributes or MatMul()
    sides = []
    for n, swapped in enumerate((a.transpose_a, a.transpose_b)):
        rank = len(m.inputs[n].shape)
        order = [*range(rank - 2), rank - 1, rank - 2]
        turn = swapped and rank > 1
        sides.append(m.node("Transpose", m.of(n), perm=order) if turn else m.of(n))
    return m.node("MatMul", *sides)


def einsum(m: Model) -> str:
    names = [m.of(n) for n in range(len(m.inputs))]
    return m.node("Einsum", *names, equation=m.attributes.equation)


MODELS: dict[str, Writer] = {
    "linear": linear,
    "matmul": matmul,
    "einsum": einsum,
}
