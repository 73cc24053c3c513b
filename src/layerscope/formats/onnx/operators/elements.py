"""Element-wise operators."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.known import Known
from layerscope.formats.onnx.numbers import cast_dtype
from layerscope.formats.onnx.operators.activations import UNARY, unary
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Role, Shape
from layerscope.ops.spec import broadcast

BINARY = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Pow": "pow", "Mod": "mod",
    "Equal": "compare", "Greater": "compare", "Less": "compare", "GreaterOrEqual": "compare",
    "LessOrEqual": "compare", "And": "logical", "Or": "logical", "Xor": "logical",
    "BitwiseAnd": "bitwise", "BitwiseOr": "bitwise", "BitwiseXor": "bitwise",
    "BitShift": "bitwise", "PRelu": "prelu",
}  # fmt: skip
MANY = {"Sum": "add", "Max": "max", "Min": "min", "Mean": "mean"}
ROLES: dict[str, Role] = {"Add": "bias", "Sub": "bias", "Mul": "scale", "Div": "scale"}


def _aligned(s: Site) -> tuple[Known, Known]:
    """Both operands; before opset 7 the second one stood along the axes from `axis` on."""
    left, right = s.given(0), s.given(1)
    if s.opset < 7 and "axis" in s.told and left.shape is not None and right.shape is not None:
        axis = s.whole("axis") % max(len(left.shape), 1)
        missing = len(left.shape) - axis - len(right.shape)
        if missing > 0:
            shape: Shape = (*right.shape, *(1,) * missing)
            right = s.emit("reshape", (right,), at.Reshape(shape), part="axes")[0]
    return left, right


def binary(s: Site) -> None:
    """A function of two tensors, broadcast."""
    left, right = _aligned(s)
    s.emit(BINARY[s.op], (left, right), roles=ROLES.get(s.op, "weight"))


def many(s: Site) -> None:
    """A function of any number of tensors."""
    s.emit(MANY[s.op], [known for known in s.inputs if known is not None], roles="bias")


def prelu(s: Site) -> None:
    """PRelu: a slope for each channel, or one in all."""
    slope = s.given(1)
    if not s.stored(1) or slope.shape is None:
        s.emit("prelu", (s.given(0), slope), at.PReLU(shared=True))
        return
    shared = max(slope.shape, default=1) == 1
    s.emit(
        "prelu", (s.given(0),), at.PReLU(shared=True) if shared else at.PReLU(),
        params=(s.param(1, "weight", "slope"),),
    )  # fmt: skip


def clip(s: Site) -> None:
    """Clip: bounds are told, or inputs since opset 11."""
    low, high = s.told.get("min"), s.told.get("max")
    bounds = [low, high]
    for n in (1, 2):
        value = s.value(n)
        if value is not None and value.values:
            bounds[n - 1] = value.values[0]
    if bounds == [0, 6]:
        s.emit("relu6", (s.given(0),))
    else:
        s.emit("clip", (s.given(0),), at.Activation(bounds[0], bounds[1]))


def cast(s: Site) -> None:
    """Cast to a type that is told."""
    dtype = cast_dtype(s.told.get("to", 0))
    if s.op == "CastLike":
        dtype = s.dtype(1)
    elif s.op == "BitCast" and not dtype:
        dtype = s.dtype(0)
    s.emit("cast", (s.given(0),), at.Cast(dtype))


def where(s: Site) -> None:
    """Where."""
    broadcast((s.shape(0), s.shape(1), s.shape(2)))
    s.emit("where", (s.given(0), s.given(1), s.given(2)))


def dropout(s: Site) -> None:
    """Dropout, which does nothing at inference; asked for its mask, it makes one of ones."""
    ratio = s.value(1)
    s.value(2)
    p = float(ratio.values[0]) if ratio is not None and ratio.values else s.real("ratio", 0.5)
    s.emit("dropout", (s.given(0),), at.Dropout(p), outputs=s.operator.outputs[:1])
    s.extra(1, s.shape(0), "bool")


def gelu(s: Site) -> None:
    """Gelu, by the error function or by tanh."""
    tanh = s.text("approximate", "none") == "tanh" or s.op == "FastGelu"
    x = s.given(0)
    if s.has(1):  # with a bias in front
        x = s.emit("add", (x, s.given(1)), part="bias", roles="bias")[0]
    s.emit("gelu_tanh" if tanh else "gelu", (x,))


def swish(s: Site) -> None:
    """X · sigmoid(x)."""
    s.emit("silu", (s.given(0),))


def softmax(s: Site) -> None:
    """Softmax and its kin; before opset 13 over all axes from one on together."""
    op = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Hardmax": "hardmax"}[s.op]
    old = s.opset < 13
    axis = s.whole("axis", 1 if old else -1)
    rank = len(s.shape(0))
    tail = old and axis % max(rank, 1) != rank - 1
    s.emit(op, (s.given(0),), at.Softmax(axis, tail=True) if tail else at.Softmax(axis))


def gated(s: Site) -> None:
    """SwiGLU: x · sigmoid(alpha · x) of one half, times the other."""
    x = s.given(0)
    if s.shape(0) != s.shape(1):
        raise ShapeError(f"a gate of {s.shape(0)} for {s.shape(1)}")
    if s.real("alpha", 1.0) != 1.0:
        power = s.emit("mul", (x,), part="alpha")[0]
        power = s.emit("sigmoid", (power,), part="sigmoid")[0]
        gate = s.emit("mul", (x, power), part="swish")[0]
    else:
        gate = s.emit("silu", (x,), part="swish")[0]
    s.emit("mul", (gate, s.given(1)))


OPERATORS: dict[tuple[str, str], Convert] = {
    **{("", op): unary for op in UNARY},
    **{("", op): binary for op in BINARY},
    **{("", op): many for op in MANY},
    ("", "PRelu"): prelu,
    ("", "Clip"): clip,
    ("", "Cast"): cast,
    ("", "CastLike"): cast,
    ("", "BitCast"): cast,
    ("", "Where"): where,
    ("", "Dropout"): dropout,
    ("", "Gelu"): gelu,
    ("", "Swish"): swish,
    ("", "Softmax"): softmax,
    ("", "LogSoftmax"): softmax,
    ("", "Hardmax"): softmax,
    ("", "SwiGLU"): gated,
    ("com.microsoft", "Gelu"): gelu,
    ("com.microsoft", "FastGelu"): gelu,
    ("com.microsoft", "BiasGelu"): gelu,
    ("com.microsoft", "QuickGelu"): unary,
}
