"""Matrix products and einsum."""

from __future__ import annotations

from layerscope.graph.attributes import Einsum, Linear, MatMul
from layerscope.lower.builder import Emitter, NodeEmitter


def linear(node: NodeEmitter) -> str:
    a: Linear = node.attributes
    if a.flatten and a.axis % node.rank == 1:
        x = node.add("Flatten", node.x, axis=1) if node.rank > 2 else node.x
        return _gemm(node, x)
    if node.rank == 2 and not a.flatten:
        return _gemm(node, node.x)
    x = node.x
    if a.flatten:
        x = node.reshape(x, (*node.shape[: a.axis % node.rank], -1))
    y = node.add("MatMul", x, node.add("Transpose", node.param("weight"), perm=[1, 0]))
    return node.add("Add", y, node.param("bias")) if a.bias else y


def _gemm(node: NodeEmitter, x: str) -> str:
    bias = (node.param("bias"),) if node.attributes.bias else ()
    return node.add("Gemm", x, node.param("weight"), *bias, transB=1)


def matmul(node: NodeEmitter) -> str:
    a: MatMul = node.attributes or MatMul()
    sides = []
    for n, transposed in enumerate((a.transpose_a, a.transpose_b)):
        rank = len(node.call.inputs[n])
        order = [*range(rank - 2), rank - 1, rank - 2]
        name = node.operand(n, node.dtype)
        sides.append(node.add("Transpose", name, perm=order) if transposed and rank > 1 else name)
    return node.add("MatMul", *sides)


def einsum(node: NodeEmitter) -> str:
    a: Einsum = node.attributes
    left, arrow, right = a.equation.partition("->")
    if "..." in left and arrow and "..." not in right:
        raise node.refuse(f"{a.equation!r} sums axes under an ellipsis, which ONNX does not")
    names = [node.operand(n, node.dtype) for n in range(len(node.inputs))]
    return node.add("Einsum", *names, equation=a.equation)


EMITTERS: dict[str, Emitter] = {
    "linear": linear,
    "matmul": matmul,
    "einsum": einsum,
}
