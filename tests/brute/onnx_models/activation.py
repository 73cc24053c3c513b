"""ONNX models of activations, softmax and other functions of one tensor."""

from __future__ import annotations

import math

from layerscope.graph.attributes import Softmax
from tests.brute.engine import Model, Writer, along_axis, plain


def prelu(m: Model) -> str:
    return m.node(
        "PRelu", m.x, along_axis(m, "weight", 1, bool(m.attributes and m.attributes.shared))
    )


def with_alpha(op: str) -> Writer:
    return lambda m: m.node(op, m.x, alpha=m.attributes.alpha)


def clip(low: float | None = None, high: float | None = None) -> Writer:
    def write(m: Model) -> str:
        a = m.attributes
        lowest, highest = a.alpha if low is None else low, a.beta if high is None else high
        return m.node("Clip", m.x, m.number(lowest), m.number(highest))

    return write


def along(op: str) -> Writer:
    return lambda m: m.node(op, m.x, axis=(m.attributes or Softmax()).axis)


def hard_sigmoid(m: Model) -> str:
    return m.node("HardSigmoid", m.x, alpha=m.attributes.alpha, beta=m.attributes.beta)


WHOLE = {
    "erf": "Erf", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos",
    "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh",
    "atanh": "Atanh", "floor": "Floor", "ceil": "Ceil", "round": "Round", "sign": "Sign",
    "reciprocal": "Reciprocal", "is_nan": "IsNaN", "is_inf": "IsInf", "bitwise_not": "BitwiseNot",
    "mish": "Mish", "softsign": "Softsign",
}  # fmt: skip


def quick_gelu(m: Model) -> str:
    return m.node("Mul", m.x, m.node("Sigmoid", m.node("Mul", m.x, m.number(1.702))))


def log_sigmoid(m: Model) -> str:
    return m.node("Neg", m.node("Softplus", m.node("Neg", m.x)))


def shrink(m: Model) -> str:
    return m.node("Shrink", m.x, lambd=m.attributes.alpha, bias=m.attributes.beta)


def softmax(op: str) -> Writer:
    """Over several axes together they are made one."""

    def write(m: Model) -> str:
        a: Softmax = m.attributes or Softmax()
        if not a.tail:
            return m.node(op, m.x, axis=a.axis)
        rows = math.prod(m.shape[: a.axis])
        y = m.node(op, m.node("Reshape", m.x, m.ints(rows, -1)), axis=1)
        return m.node("Reshape", y, m.ints(*m.shape))

    return write


MODELS: dict[str, Writer] = {
    "relu": plain("Relu"),
    "relu6": clip(0.0, 6.0),
    "clip": clip(),
    "abs": plain("Abs"),
    "threshold": with_alpha("ThresholdedRelu"),
    "leaky_relu": with_alpha("LeakyRelu"),
    "elu": with_alpha("Elu"),
    "selu": plain("Selu"),
    "sigmoid": plain("Sigmoid"),
    "tanh": plain("Tanh"),
    "silu": lambda m: m.node("Mul", m.x, m.node("Sigmoid", m.x)),
    "hard_sigmoid": hard_sigmoid,
    "hard_swish": plain("HardSwish"),
    "gelu": plain("Gelu", approximate="none"),
    "gelu_tanh": plain("Gelu", approximate="tanh"),
    "softplus": plain("Softplus"),
    "exp": plain("Exp"),
    "log": plain("Log"),
    "sqrt": plain("Sqrt"),
    "neg": plain("Neg"),
    "prelu": prelu,
    **{ours: plain(op) for ours, op in WHOLE.items()},
    "not": lambda m: m.node("Not", m.cast(m.x, "bool")),
    "quick_gelu": quick_gelu,
    "rsqrt": lambda m: m.node("Reciprocal", m.node("Sqrt", m.x)),
    "square": lambda m: m.node("Mul", m.x, m.x),
    "log_sigmoid": log_sigmoid,
    "expm1": lambda m: m.node("Sub", m.node("Exp", m.x), m.number(1.0)),
    "log1p": lambda m: m.node("Log", m.node("Add", m.x, m.number(1.0))),
    "celu": with_alpha("Celu"),
    "thresholded_relu": with_alpha("ThresholdedRelu"),
    "shrink": shrink,
    "hardmax": softmax("Hardmax"),
    "softmax": softmax("Softmax"),
    "log_softmax": softmax("LogSoftmax"),
}
