"""Element-wise functions of one tensor: activations, and mathematical functions."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
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


def prelu(node: OnnxNode) -> None:
    """PRelu: a slope for each channel, or one in all."""
    slope = node.input("slope")
    if not node.stored("slope") or slope.shape is None:
        node.emit("prelu", (node.input("X"), slope), at.PReLU(shared=True))
        return
    shared = max(slope.shape, default=1) == 1
    node.emit(
        "prelu", (node.input("X"),), at.PReLU(shared=True) if shared else at.PReLU(),
        params=(node.param("slope", "weight", "slope"),),
    )  # fmt: skip


def clip(node: OnnxNode) -> None:
    """Clip: the bounds are attributes, or inputs since opset 11."""
    bounds = [node.attrs.get(name) for name in ("min", "max")]
    for n, name in enumerate(("min", "max")):
        value = node.value(name)
        if value is not None and value.values:
            bounds[n] = value.values[0]
    if bounds == [0, 6]:
        node.emit("relu6", (node.input("input"),))
    else:
        node.emit("clip", (node.input("input"),), at.Activation(bounds[0], bounds[1]))


def gelu(node: OnnxNode) -> None:
    """Gelu, by the error function or by tanh."""
    tanh = node.str_attr("approximate", "none") == "tanh" or node.op == "FastGelu"
    x = node.input()
    bias = node.optional(1)
    if bias is not None:  # FastGelu, BiasGelu
        x = node.emit("add", (x, bias), part="bias", roles="bias")[0]
    node.emit("gelu_tanh" if tanh else "gelu", (x,))


def swish(node: OnnxNode) -> None:
    """X · sigmoid(x)."""
    node.emit("silu", (node.input(),))


def softmax(node: OnnxNode) -> None:
    """Softmax, LogSoftmax, Hardmax; before opset 13 over all axes from `axis` on together."""
    op = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Hardmax": "hardmax"}[node.op]
    old = node.opset < 13
    axis = node.int_attr("axis", 1 if old else -1)
    rank = len(node.shape())
    tail = old and axis % max(rank, 1) != rank - 1
    node.emit(op, (node.input(),), at.Softmax(axis, tail=True) if tail else at.Softmax(axis))


def gated(node: OnnxNode) -> None:
    """SwiGLU: x · sigmoid(alpha · x) of one half, times the other."""
    x = node.input("A")
    if node.shape("A") != node.shape("B"):
        raise ShapeError(f"a gate of {node.shape('A')} for {node.shape('B')}")
    if node.float_attr("alpha", 1.0) != 1.0:
        power = node.emit("mul", (x,), part="alpha")[0]
        power = node.emit("sigmoid", (power,), part="sigmoid")[0]
        gate = node.emit("mul", (x, power), part="swish")[0]
    else:
        gate = node.emit("silu", (x,), part="swish")[0]
    node.emit("mul", (gate, node.input("B")))


def bias_softmax(node: OnnxNode) -> None:
    """BiasSoftmax: a mask added to scores, then softmax over all axes from `axis` on."""
    y = node.emit("add", (node.input("data"), node.input("bias")), part="add")[0]
    rank = len(node.shape("data"))
    axis = node.int_attr("axis", 1)
    tail = axis % max(rank, 1) != rank - 1
    node.emit("softmax", (y,), at.Softmax(axis, tail=tail))


OPERATORS: ConverterTable = {
    **{("", op): Converter(unary, "X") for op in UNARY},
    ("", "PRelu"): Converter(prelu, "X slope"),
    ("", "Clip"): Converter(clip, "input min max"),
    ("", "Gelu"): Converter(gelu, "X"),
    ("com.microsoft", "Gelu"): Converter(gelu, "X"),
    ("com.microsoft", "FastGelu"): Converter(gelu, "X bias"),
    ("com.microsoft", "BiasGelu"): Converter(gelu, "A B"),
    ("", "Swish"): Converter(swish, "X"),
    ("", "Softmax"): Converter(softmax, "input"),
    ("", "LogSoftmax"): Converter(softmax, "input"),
    ("", "Hardmax"): Converter(softmax, "input"),
    ("", "SwiGLU"): Converter(gated, "A B"),
    ("com.microsoft", "QuickGelu"): Converter(unary, "X"),
    ("com.microsoft", "BiasSoftmax"): Converter(bias_softmax, "data bias"),
}
