"""Matrix products."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.converters.activation import apply_activation
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.tensor_info import TensorInfo
from layerscope.graph import attributes as at


def matmul(node: OnnxNode) -> None:
    """MatMul; a linear layer if the right side is stored."""
    right = node.input("B")
    if node.stored("B") and right.shape is not None and len(right.shape) == 2:
        rows, columns = right.shape
        if node.shape("A")[-1:] != (rows,):
            raise ShapeError(f"matrix product of {node.shape('A')} by {right.shape}")
        linear(node, node.input("A"), columns, ("B",))
        return
    node.emit("matmul", (node.input("A"), right))


def linear(
    node: OnnxNode,
    x: TensorInfo,
    features: int,
    arrays: tuple[str, ...],
    *,
    part: str = "",
) -> TensorInfo:
    """A linear layer by stored inputs: the matrix, and a bias if two are named."""
    params = [node.param(arrays[0], "weight", "weight")]
    if len(arrays) > 1:
        params.append(node.param(arrays[1], "bias", "bias"))
    attrs = at.Linear(features, bias=len(arrays) > 1)
    return node.emit("linear", (x,), attrs, params=params, part=part)[0]


def gemm(node: OnnxNode) -> None:
    """Gemm: alpha · A · B + beta · C; a linear layer if B and C are stored."""
    product(node)


def product(node: OnnxNode, *, part: str = "") -> TensorInfo:
    """The result of a Gemm, as the operator's output or as a part of it."""
    x, w = node.shape("A"), node.shape("B")
    if node.opset < 7 and len(x) > 2 and not node.domain:
        raise ShapeError(f"a matrix product of {x}")
    if len(x) != 2 or len(w) != 2:
        raise ShapeError(f"a matrix product of {x} by {w}, expected two axes each")
    across, down = bool(node.int_attr("transA")), bool(node.int_attr("transB"))
    inner, features = (w[1], w[0]) if down else (w[0], w[1])
    if x[0 if across else 1] != inner:
        raise ShapeError(f"matrix product of {x} by {w}: {inner} does not agree")
    alpha, beta = node.float_attr("alpha", 1.0), node.float_attr("beta", 1.0)
    left, bias = node.input("A"), node.optional("C")
    plain = not across and node.stored("B") and alpha == 1
    if plain and (bias is None or (beta == 1 and _is_bias(bias, features))):
        arrays = ("B",) if bias is None else ("B", "C")
        return linear(node, left, features, arrays, part=part)
    inside = part if alpha == 1 and bias is None else "product"
    if plain:
        y = linear(node, left, features, ("B",), part=inside)
    else:
        attrs = at.MatMul(across, down) if across or down else None
        y = node.emit("matmul", (left, node.input("B")), attrs, part=inside)[0]
    if alpha != 1:
        y = node.emit("mul", (y,), part="alpha" if bias is not None else part)[0]
    if bias is not None:
        if beta != 1:
            bias = node.emit("mul", (bias,), part="beta", roles="bias")[0]
        y = node.emit("add", (y, bias), part=part, roles="bias")[0]
    return y


def _is_bias(tensor: TensorInfo, features: int) -> bool:
    """Whether a tensor is stored and has one number for each feature."""
    shape = tensor.shape
    if tensor.initializer is None or shape is None or shape[-1:] != (features,):
        return False
    return max(shape[:-1], default=1) == 1


def fused_matmul(node: OnnxNode) -> None:
    """FusedMatMul: a product with transposed sides, a factor and an activation after it."""
    sides = [
        _turned(node, side) if node.int_attr(f"transBatch{side}") else node.input(side)
        for side in ("A", "B")
    ]
    across, down = bool(node.int_attr("transA")), bool(node.int_attr("transB"))
    attrs = at.MatMul(across, down) if across or down else None
    scaled = node.float_attr("alpha", 1.0) != 1.0
    named = node.str_attr("activation")
    part = "product" if scaled or named else ""
    right = node.input("B")
    stored = node.stored("B") and right.shape is not None and len(right.shape) == 2
    if stored and sides[1] is right and not across:
        assert right.shape is not None
        rows, columns = right.shape[::-1] if down else right.shape
        if node.shape("A")[-1:] != (rows,):
            raise ShapeError(f"matrix product of {node.shape('A')} by {right.shape}")
        y = linear(node, sides[0], columns, ("B",), part=part)
    else:
        y = node.emit("matmul", sides, attrs, part=part)[0]
    if scaled:
        y = node.emit("mul", (y,), part="alpha" if named else "")[0]
    if named:
        apply_activation(node, named, y)


def _turned(node: OnnxNode, side: str) -> TensorInfo:
    """A side whose first axis is moved behind those of the batch."""
    rank = len(node.shape(side))
    order = at.Permute((*range(1, rank - 1), 0, rank - 1))
    return node.emit("permute", (node.input(side),), order, part=f"batch_{side.lower()}")[0]


def einsum(node: OnnxNode) -> None:
    """Einsum."""
    node.emit("einsum", node.given(), at.Einsum(node.str_attr("equation").replace(" ", "")))


OPERATORS: ConverterTable = {
    ("", "MatMul"): Converter(matmul, "A B"),
    ("", "Gemm"): Converter(gemm, "A B C"),
    ("", "Einsum"): Converter(einsum, "Inputs"),
    ("com.microsoft", "FusedMatMul"): Converter(fused_matmul, "A B"),
    ("com.microsoft", "FusedMatMulActivation"): Converter(fused_matmul, "A B"),
    ("com.microsoft", "TransposeMatMul"): Converter(fused_matmul, "A B"),
}
