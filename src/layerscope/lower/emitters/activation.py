"""Activations, other functions of one tensor, and softmax."""

from __future__ import annotations

from layerscope.graph.attributes import Activation, PReLU, Softmax
from layerscope.graph.types import elements
from layerscope.lower.builder import INTEGERS, Emitter, NodeEmitter, plain


def _attributes(node: NodeEmitter) -> Activation:
    return node.attributes if isinstance(node.attributes, Activation) else Activation()


def with_alpha(op: str, default: float) -> Emitter:
    """Emitter for an operator with the attribute alpha."""

    def emit(node: NodeEmitter) -> str:
        alpha = _attributes(node).alpha
        return node.add(op, node.x, alpha=default if alpha is None else alpha)

    return emit


def clip(node: NodeEmitter) -> str:
    a = _attributes(node)
    low, high = ("" if end is None else node.number(end) for end in (a.alpha, a.beta))
    return node.add("Clip", node.x, *((low, high) if high else (low,) if low else ()))


def hard_sigmoid(node: NodeEmitter) -> str:
    a = _attributes(node)
    alpha, beta = 1 / 6 if a.alpha is None else a.alpha, 0.5 if a.beta is None else a.beta
    return node.add("HardSigmoid", node.x, alpha=alpha, beta=beta)


def shrink(node: NodeEmitter) -> str:
    a = _attributes(node)
    lambd, bias = 0.5 if a.alpha is None else a.alpha, 0.0 if a.beta is None else a.beta
    return node.add("Shrink", node.x, lambd=lambd, bias=bias)


def bitwise_not(node: NodeEmitter) -> str:
    if node.dtype == "bool":
        return node.add("Not", node.x)
    kind = node.dtype if node.dtype in INTEGERS else "int64"
    y = node.add("BitwiseNot", node.operand(0, kind))
    return y if kind == node.dtype else node.cast(y, node.dtype)


def quick_gelu(node: NodeEmitter) -> str:
    return node.add(
        "Mul",
        node.x,
        node.add("Sigmoid", node.add("Mul", node.x, node.number(1.702), part="scaled")),
    )


def log_sigmoid(node: NodeEmitter) -> str:
    return node.add("Neg", node.add("Softplus", node.add("Neg", node.x, part="turned")))


def relu6(node: NodeEmitter) -> str:
    return node.add("Clip", node.x, node.number(0.0), node.number(6.0))


def prelu(node: NodeEmitter) -> str:
    a: PReLU = node.attributes or PReLU()
    shape = (1,) * max(node.rank - 1, 1) if a.shared else node.broadcast_shape(1, node.shape[1:2])
    return node.add("PRelu", node.x, node.param("weight", shape))


def along_axis(op: str) -> Emitter:
    """Emitter for an operator along one axis; with `tail` the axes are flattened into one first."""

    def emit(node: NodeEmitter) -> str:
        a: Softmax = node.attributes or Softmax()
        if not a.tail:
            return node.add(op, node.x, axis=a.axis)
        rows = elements(node.shape[: a.axis % node.rank])
        return node.reshape(node.add(op, node.reshape(node.x, (rows, -1)), axis=1), node.shape)

    return emit


OPERATORS = {
    "erf": "Erf", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos",
    "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh",
    "atanh": "Atanh", "floor": "Floor", "ceil": "Ceil", "round": "Round", "sign": "Sign",
    "reciprocal": "Reciprocal", "is_nan": "IsNaN", "is_inf": "IsInf", "mish": "Mish",
    "softsign": "Softsign",
}  # fmt: skip

EMITTERS: dict[str, Emitter] = {
    "relu": plain("Relu"),
    "relu6": relu6,
    "clip": clip,
    "abs": plain("Abs"),
    "threshold": with_alpha("ThresholdedRelu", 0.0),
    "leaky_relu": with_alpha("LeakyRelu", 0.01),
    "elu": with_alpha("Elu", 1.0),
    "selu": plain("Selu"),
    "sigmoid": plain("Sigmoid"),
    "tanh": plain("Tanh"),
    "silu": lambda node: node.add("Mul", node.x, node.add("Sigmoid", node.x)),
    "hard_sigmoid": hard_sigmoid,
    "hard_swish": plain("HardSwish"),
    "gelu": plain("Gelu", approximate="none"),
    "gelu_tanh": plain("Gelu", approximate="tanh"),
    "softplus": plain("Softplus"),
    "exp": plain("Exp"),
    "log": plain("Log"),
    "sqrt": plain("Sqrt"),
    "neg": plain("Neg"),
    **{op: plain(operator) for op, operator in OPERATORS.items()},
    "not": lambda node: node.add("Not", node.operand(0, "bool")),
    "bitwise_not": bitwise_not,
    "rsqrt": lambda node: node.add("Reciprocal", node.add("Sqrt", node.x)),
    "square": lambda node: node.add("Mul", node.x, node.x),
    "expm1": lambda node: node.add("Sub", node.add("Exp", node.x), node.number(1.0)),
    "log1p": lambda node: node.add("Log", node.add("Add", node.x, node.number(1.0))),
    "celu": with_alpha("Celu", 1.0),
    "thresholded_relu": with_alpha("ThresholdedRelu", 1.0),
    "shrink": shrink,
    "quick_gelu": quick_gelu,
    "log_sigmoid": log_sigmoid,
    "hardmax": along_axis("Hardmax"),
    "softmax": along_axis("Softmax"),
    "log_softmax": along_axis("LogSoftmax"),
    "prelu": prelu,
}
