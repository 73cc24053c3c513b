"""Element-wise operators."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.converters.activation import UNARY, unary
from layerscope.formats.onnx.dtypes import cast_dtype
from layerscope.formats.onnx.node import OnnxNode, Op, OpTable
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
    bounds = []
    for name in ("min", "max"):
        value = node.value(name)
        constant = value is not None and value.values
        bounds.append(value.values[0] if value is not None and constant else node.attrs.get(name))
    if bounds == [0, 6]:
        node.emit("relu6", (node.input("input"),))
    else:
        node.emit("clip", (node.input("input"),), at.Activation(bounds[0], bounds[1]))


def cast(node: OnnxNode) -> None:
    """Cast, CastLike, BitCast."""
    dtype = cast_dtype(node.attrs.get("to", 0))
    if node.op == "CastLike":
        dtype = node.dtype("target_type")
    elif node.op == "BitCast" and not dtype:
        dtype = node.dtype("input")
    node.emit("cast", (node.input("input"),), at.Cast(dtype))


def where(node: OnnxNode) -> None:
    """Where."""
    broadcast((node.shape("condition"), node.shape("X"), node.shape("Y")))
    node.emit("where", (node.input("condition"), node.input("X"), node.input("Y")))


def dropout(node: OnnxNode) -> None:
    """Dropout, which does nothing at inference; its mask is all ones."""
    ratio = node.value("ratio")
    node.mark_constant("training_mode")
    p = (
        float(ratio.values[0])
        if ratio is not None and ratio.values
        else node.float_attr("ratio", 0.5)
    )
    node.emit("dropout", (node.input("data"),), at.Dropout(p), outputs=node.outputs[:1])
    node.extra_output(1, node.shape("data"), "bool")


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


OPERATORS: OpTable = {
    **{("", op): Op(unary, "X") for op in UNARY},
    **{("", op): Op(binary, "X Y" if op in ("Pow", "BitShift") else "A B") for op in BINARY},
    **{("", op): Op(many, "data_0") for op in MANY},
    ("", "PRelu"): Op(prelu, "X slope"),
    ("", "Clip"): Op(clip, "input min max"),
    ("", "Cast"): Op(cast, "input"),
    ("", "CastLike"): Op(cast, "input target_type"),
    ("", "BitCast"): Op(cast, "input"),
    ("", "Where"): Op(where, "condition X Y"),
    ("", "Dropout"): Op(dropout, "data ratio training_mode"),
    ("", "Gelu"): Op(gelu, "X"),
    ("", "Swish"): Op(swish, "X"),
    ("", "Softmax"): Op(softmax, "input"),
    ("", "LogSoftmax"): Op(softmax, "input"),
    ("", "Hardmax"): Op(softmax, "input"),
    ("", "SwiGLU"): Op(gated, "A B"),
    ("com.microsoft", "Gelu"): Op(gelu, "X"),
    ("com.microsoft", "FastGelu"): Op(gelu, "X bias"),
    ("com.microsoft", "BiasGelu"): Op(gelu, "A B"),
    ("com.microsoft", "QuickGelu"): Op(unary, "X"),
}
