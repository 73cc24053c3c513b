"""Matrix products."""

from __future__ import annotations

from layerscope.graph.attributes import Linear, MatMul
from layerscope.lower.builder import Site, Writer, plain


def linear(s: Site) -> str:
    a: Linear = s.attributes
    if a.flatten and a.axis % s.rank == 1:
        x = s.add("Flatten", s.x, axis=1) if s.rank > 2 else s.x
        return _gemm(s, x)
    if s.rank == 2 and not a.flatten:
        return _gemm(s, s.x)
    x = s.x
    if a.flatten:
        x = s.reshape(x, (*s.shape[: a.axis % s.rank], -1))
    y = s.add("MatMul", x, s.add("Transpose", s.param("weight"), perm=[1, 0]))
    return s.add("Add", y, s.param("bias")) if a.bias else y


def _gemm(s: Site, x: str) -> str:
    bias = (s.param("bias"),) if s.attributes.bias else ()
    return s.add("Gemm", x, s.param("weight"), *bias, transB=1)


def matmul(s: Site) -> str:
    a: MatMul = s.attributes or MatMul()
    sides = []
    for n, turned in enumerate((a.transpose_a, a.transpose_b)):
        rank = len(s.call.inputs[n])
        order = [*range(rank - 2), rank - 1, rank - 2]
        name = s.operand(n, s.dtype)
        sides.append(s.add("Transpose", name, perm=order) if turned and rank > 1 else name)
    return s.add("MatMul", *sides)


WRITERS: dict[str, Writer] = {"linear": linear, "matmul": matmul, "det": plain("Det")}
