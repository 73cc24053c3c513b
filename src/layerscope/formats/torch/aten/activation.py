"""Functions of one tensor, element by element: activations, exp, sqrt and so on, and softmax."""

from __future__ import annotations

from layerscope.formats.torch.aten.control import scalar_constant
from layerscope.formats.torch.aten.layout import reshape
from layerscope.formats.torch.aten.promotion import require_integers, to_floating
from layerscope.formats.torch.aten.signatures import DType, OneOutput, Operand
from layerscope.formats.torch.dtypes import INEXACT, name_of
from layerscope.formats.torch.lowering import Lowering, TensorRef, axis
from layerscope.graph import attributes as at
from layerscope.graph.types import Source, elements
from layerscope.ops.spec import axis_of

DEFAULTS = {"leaky_relu": (0.01,), "elu": (1.0,), "softplus": (1.0, 20.0)}  # alpha, beta
WITH_ATTRIBUTES = (
    "relu", "relu6", "leaky_relu", "elu", "selu", "celu", "sigmoid", "tanh", "silu", "mish",
    "hard_sigmoid", "hard_swish", "gelu", "gelu_tanh", "softplus", "clip", "threshold",
)  # fmt: skip
# Integers are cast to floats first.
FLOAT_RESULTS = (
    "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tan", "erf", "sigmoid", "tanh", "reciprocal",
    "log1p", "expm1", "atan",
)  # fmt: skip


def unary(op: str) -> OneOutput:
    """A converter to `op`; scalar arguments (a slope, a threshold) become its attributes."""

    def convert(d: Lowering, self: TensorRef, *scalars: object, **_: object) -> TensorRef:
        if op == "bitwise_not":
            require_integers(self)
        x = to_floating(d, self) if op in FLOAT_RESULTS else self
        constants = [each for each in scalars if isinstance(each, (int, float))][:2]
        return d.add(op, x, at=_activation(op, constants, d.in_place))

    return convert


def _activation(op: str, constants: list[float], in_place: bool) -> at.Activation | None:
    if op not in WITH_ATTRIBUTES:
        return None
    if op not in DEFAULTS:
        return at.Activation(in_place=in_place)
    values = [float(c) for c in constants]
    values += DEFAULTS[op][len(values) :]
    return at.Activation(values[0], values[1] if len(values) > 1 else None, in_place)


def gelu(d: Lowering, self: TensorRef, approximate: str = "none") -> TensorRef:
    op = "gelu_tanh" if approximate == "tanh" else "gelu"
    return d.add(op, self, at=at.Activation(in_place=d.in_place))


def hardtanh(
    d: Lowering, self: TensorRef, min_val: float = -1.0, max_val: float = 1.0
) -> TensorRef:
    op = "relu6" if (min_val, max_val) == (0, 6) else "clip"
    return d.add(op, self, at=at.Activation(in_place=d.in_place))


def clamp(
    d: Lowering, self: TensorRef, min: Operand | None = None, max: Operand | None = None
) -> TensorRef:
    """One `clip` for two scalar bounds, else `max` and `min`, each with its bound."""
    if not any(each is None or isinstance(each, TensorRef) for each in (min, max)):
        return d.add("clip", self, at=at.Activation(in_place=d.in_place))
    x = self
    for op, bound in (("max", min), ("min", max)):
        if bound is not None:
            if x is not self:
                d.source = Source(op=f"{d.source.op}.second")
            x = d.add(op, x, *([bound] if isinstance(bound, TensorRef) else []))
    return x


def clamp_max(d: Lowering, self: TensorRef, max: Operand) -> TensorRef:
    return clamp(d, self, None, max)


def prelu(d: Lowering, self: TensorRef, weight: TensorRef) -> TensorRef:
    if not weight.rank or not self.rank:
        return prelu_kernel(d, self, weight)
    attrs = at.PReLU(shared=elements(weight.shape) == 1)
    if weight.stored:
        return d.add("prelu", self, at=attrs, holds={"weight": weight})
    return d.add("prelu", self, weight, at=attrs)


def prelu_kernel(d: Lowering, self: TensorRef, weight: TensorRef) -> TensorRef:
    """As `prelu`; the slopes have the rank of the input, with every axis but one of size 1."""
    row = (elements(weight.shape),)
    x = self if self.rank else reshape(d, self, (1,))
    y = d.add("prelu", x, reshape(d, weight, row), at=at.PReLU(row == (1,)))
    return reshape(d, y, self.shape)


def glu(d: Lowering, self: TensorRef, dim: int = -1) -> TensorRef:
    """One half times the sigmoid of the other."""
    a, b = d.several("split", self, at=at.Split(axis_of(dim, self.rank), parts=2))
    return d.add("mul", a, d.add("sigmoid", b))


def rrelu(
    d: Lowering,
    self: TensorRef,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    *_: object,
) -> TensorRef:
    """Random slopes in training, else the mean of both bounds."""
    if not training:
        return d.add("leaky_relu", self, at=at.Activation((lower + upper) / 2, None, d.in_place))
    slopes = d.add("random", at=at.DeclaredOutputs((self.shape,), (self.dtype,)))
    d.source = Source(op=f"{d.source.op}.drawn")
    return d.add("where", d.add("compare", self), self, d.add("mul", self, slopes))


def is_infinite(d: Lowering, self: TensorRef) -> TensorRef:
    return d.add("is_inf", self)


def nan_to_num(
    d: Lowering,
    self: TensorRef,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> TensorRef:
    """NaN replaced by a scalar, then infinities clipped to the largest finite values."""
    if not self.dtype.startswith(INEXACT):
        return d.add("identity", self)
    finite = d.add("where", d.add("is_nan", self), scalar_constant(d, self.dtype), self)
    return d.add("clip", finite, at=at.Activation())


def softmax(op: str) -> OneOutput:
    """A converter to `softmax` or `log_softmax`; a dtype casts the input first."""

    def convert(
        d: Lowering, self: TensorRef, dim: int, *options: object, dtype: DType = None, **_: object
    ) -> TensorRef:
        given = next((each for each in (*options, dtype) if str(each).startswith("torch.")), None)
        axis(dim, max(self.rank, 1))
        x = self if given is None else d.cast(self, name_of(given))
        return d.add(op, x, at=at.Softmax(dim)) if self.rank else x

    return convert


# ATen operator -> op
UNARY = {
    "relu": "relu", "relu6": "relu6", "leaky_relu": "leaky_relu", "elu": "elu", "selu": "selu",
    "celu": "celu", "sigmoid": "sigmoid", "tanh": "tanh", "silu": "silu", "mish": "mish",
    "hardsigmoid": "hard_sigmoid", "hardswish": "hard_swish", "softplus": "softplus",
    "log_sigmoid": "log_sigmoid", "log_sigmoid_forward": "log_sigmoid",
    "hardshrink": "shrink", "softshrink": "shrink",
    "threshold": "threshold", "exp": "exp", "log": "log", "sqrt": "sqrt", "neg": "neg",
    "negative": "neg", "abs": "abs", "absolute": "abs", "rsqrt": "rsqrt",
    "reciprocal": "reciprocal", "square": "square", "erf": "erf", "sin": "sin", "cos": "cos",
    "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "arctan": "atan",
    "sinh": "sinh", "cosh": "cosh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh",
    "floor": "floor", "ceil": "ceil", "round": "round", "trunc": "floor", "sign": "sign",
    "sgn": "sign", "logical_not": "not", "bitwise_not": "bitwise_not", "isnan": "is_nan",
    "isinf": "is_inf", "expm1": "expm1", "log1p": "log1p", "log2": "log", "log10": "log",
    "exp2": "exp", "special_expm1": "expm1",
}  # fmt: skip

TABLE: dict[str, OneOutput] = {
    **{name: unary(op) for name, op in UNARY.items()},
    "gelu": gelu,
    "hardtanh": hardtanh,
    "clamp": clamp,
    "clip": clamp,
    "clamp_min": clamp,
    "clamp_max": clamp_max,
    "prelu": prelu,
    "_prelu_kernel": prelu_kernel,
    "glu": glu,
    "rrelu": rrelu,
    "isfinite": is_infinite,
    "isposinf": is_infinite,
    "isneginf": is_infinite,
    "nan_to_num": nan_to_num,
    "softmax": softmax("softmax"),
    "_softmax": softmax("softmax"),
    "_safe_softmax": softmax("softmax"),
    "log_softmax": softmax("log_softmax"),
    "_log_softmax": softmax("log_softmax"),
}
