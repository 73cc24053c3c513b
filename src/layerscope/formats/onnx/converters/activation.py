"""Element-wise functions of one tensor: activations, and mathematical functions."""

from __future__ import annotations

from layerscope.formats.onnx.node import OnnxNode
from layerscope.formats.onnx.tensor_info import NeedsValue, TensorInfo
from layerscope.graph import attributes as at

UNARY = {
    "Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Abs": "abs", "Exp": "exp",
    "Log": "log", "Sqrt": "sqrt", "Neg": "neg", "LeakyRelu": "leaky_relu", "Elu": "elu",
    "Selu": "selu", "Celu": "celu", "Softplus": "softplus", "Softsign": "softsign",
    "HardSigmoid": "hard_sigmoid", "HardSwish": "hard_swish", "Mish": "mish", "Erf": "erf",
    "ThresholdedRelu": "thresholded_relu", "Shrink": "shrink",
    "Sin": "sin", "Cos": "cos", "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan",
    "Sinh": "sinh", "Cosh": "cosh", "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh",
    "Floor": "floor", "Ceil": "ceil", "Round": "round", "Sign": "sign",
    "Reciprocal": "reciprocal", "Not": "not", "IsNaN": "is_nan", "IsInf": "is_inf",
    "BitwiseNot": "bitwise_not", "QuickGelu": "quick_gelu", "HardTanh": "clip",
}  # fmt: skip
WITH_ALPHA = {"leaky_relu", "elu", "selu", "celu", "thresholded_relu", "hard_sigmoid"}


def apply_activation(
    node: OnnxNode, name: str, tensor: TensorInfo, *, part: str = ""
) -> TensorInfo:
    """The activation at the end of a fused operator, by its name in an attribute."""
    op = {"clip": "clip", "swish": "silu", "gelu": "gelu", "fastgelu": "gelu_tanh"}.get(
        name.lower()
    ) or {onnx_op.lower(): own_op for onnx_op, own_op in UNARY.items()}.get(name.lower())
    if op is None:
        raise NeedsValue(f"no rule for activation {name!r}")
    return node.emit(op, (tensor,), part=part)[0]


def unary(node: OnnxNode) -> None:
    """An operator of one tensor, by the table."""
    op = UNARY[node.op]
    attributes = None
    if op in WITH_ALPHA and ("alpha" in node.attrs or "gamma" in node.attrs):
        beta = node.attrs.get("beta", node.attrs.get("gamma"))
        attributes = at.Activation(node.attrs.get("alpha"), beta)
    node.emit(op, (node.input(),), attributes)
