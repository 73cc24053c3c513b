"""Element-wise operators."""

from __future__ import annotations

from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.tensor_info import TensorInfo
from layerscope.graph import attributes as at
from layerscope.graph.types import Role, Shape
from layerscope.ops.spec import broadcast

BINARY = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Pow": "pow", "Mod": "mod",
    "Equal": "compare", "Greater": "compare", "Less": "compare", "GreaterOrEqual": "compare",
    "LessOrEqual": "compare", "And": "logical", "Or": "logical", "Xor": "logical",
    "BitwiseAnd": "bitwise", "BitwiseOr": "bitwise", "BitwiseXor": "bitwise",
    "BitShift": "bitwise",
}  # fmt: skip
MANY = {"Sum": "add", "Max": "max", "Min": "min", "Mean": "mean"}
ROLES: dict[str, Role] = {"Add": "bias", "Sub": "bias", "Mul": "scale", "Div": "scale"}


def _aligned(node: OnnxNode) -> tuple[TensorInfo, TensorInfo]:
    """Both operands; before opset 7 the second one has the axes from `axis` on."""
    left, right = node.input(0), node.input(1)
    if (
        node.opset < 7
        and "axis" in node.attrs
        and left.shape is not None
        and right.shape is not None
    ):
        axis = node.int_attr("axis") % max(len(left.shape), 1)
        missing = len(left.shape) - axis - len(right.shape)
        if missing > 0:
            shape: Shape = (*right.shape, *(1,) * missing)
            right = node.emit("reshape", (right,), at.Reshape(shape), part="axes")[0]
    return left, right


def binary(node: OnnxNode) -> None:
    """A function of two tensors, broadcast."""
    left, right = _aligned(node)
    node.emit(BINARY[node.op], (left, right), roles=ROLES.get(node.op, "weight"))


def many(node: OnnxNode) -> None:
    """A function of any number of tensors, broadcast."""
    node.emit(MANY[node.op], node.given(), roles="bias")


def complex_mul(node: OnnxNode) -> None:
    """ComplexMul, ComplexMulConj: four products and two sums each."""
    broadcast((node.shape("A"), node.shape("B")))
    left = node.emit("mul", (node.input("A"), node.input("B")), part="straight")[0]
    right = node.emit("mul", (node.input("A"), node.input("B")), part="across")[0]
    node.emit("add", (left, right))


OPERATORS: ConverterTable = {
    **{("", op): Converter(binary, "X Y" if op in ("Pow", "BitShift") else "A B") for op in BINARY},
    **{("", op): Converter(many, "data_0") for op in MANY},
    ("com.microsoft", "ComplexMul"): Converter(complex_mul, "A B"),
    ("com.microsoft", "ComplexMulConj"): Converter(complex_mul, "A B"),
}
