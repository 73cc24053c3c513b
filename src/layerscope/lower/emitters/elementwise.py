"""Functions of elements: activations, and functions of several tensors broadcast together."""

from __future__ import annotations

from math import pi

from layerscope.graph.attributes import Activation, Power, Softmax, Sum
from layerscope.graph.types import elements
from layerscope.lower.builder import FLOATS, Site, Writer, plain

WHOLE = ("int64", "int32", "int16", "int8", "uint8")

CONSTANT = 1.5  # what a lone operand meets: the graph does not tell
MARK = 5  # what lone bits meet
EXPONENT = 2.0  # of a lone power, so that no root of a negative number is drawn


def _told(s: Site) -> Activation:
    return s.attributes if isinstance(s.attributes, Activation) else Activation()


def with_alpha(op: str, default: float) -> Writer:
    """An operator of one constant."""

    def write(s: Site) -> str:
        alpha = _told(s).alpha
        return s.add(op, s.x, alpha=default if alpha is None else alpha)

    return write


def clip(s: Site) -> str:
    a = _told(s)
    low, high = ("" if end is None else s.number(end) for end in (a.alpha, a.beta))
    return s.add("Clip", s.x, *((low, high) if high else (low,) if low else ()))


def hard_sigmoid(s: Site) -> str:
    a = _told(s)
    alpha, beta = 1 / 6 if a.alpha is None else a.alpha, 0.5 if a.beta is None else a.beta
    return s.add("HardSigmoid", s.x, alpha=alpha, beta=beta)


def elementwise(op: str, many: str = "") -> Writer:
    """Two operands, or more: by the operator `many` where there is one, else one by one."""

    def write(s: Site) -> str:
        names = [s.operand(n, s.dtype) for n in range(len(s.inputs))]
        if isinstance(s.attributes, Sum):
            for n in range(s.attributes.scaled):
                names[n] = s.add("Mul", names[n], s.number(CONSTANT), part="scaled")
        if len(names) == 1:
            names.append(s.number(EXPONENT if op == "Pow" else CONSTANT))
        if many and (many == op or len(names) > 2):
            return s.add(many, *names)
        result = names[0]
        for name in names[1:]:
            result = s.add(op, result, name)
        return result

    return write


def compare(s: Site) -> str:
    kind = s.dtype_of(0)
    other = s.operand(1, kind) if len(s.inputs) == 2 else s.number(CONSTANT, kind)
    return s.add("Greater", s.x, other)


def power(s: Site) -> str:
    a: Power = s.attributes
    y = s.x
    for op, value, neutral in (("Mul", a.scale, 1), ("Add", a.shift, 0), ("Pow", a.power, 1)):
        y = s.add(op, y, s.number(value)) if value != neutral else y
    return y


def axpy(s: Site) -> str:
    """The first input scales the channels of the second; the third is added."""
    shape = s.call.inputs[1]
    scale = s.reshape(s.x, (*shape[:2], *[1] * (len(shape) - 2)))
    return s.add("Add", s.add("Mul", scale, s.inputs[1]), s.inputs[2])


def along(op: str) -> Writer:
    """An operator along one axis; several are made one."""

    def write(s: Site) -> str:
        a: Softmax = s.attributes or Softmax()
        if not a.tail:
            return s.add(op, s.x, axis=a.axis)
        rows = elements(s.shape[: a.axis % s.rank])
        return s.reshape(s.add(op, s.reshape(s.x, (rows, -1)), axis=1), s.shape)

    return write


def shrink(s: Site) -> str:
    a = _told(s)
    lambd, bias = 0.5 if a.alpha is None else a.alpha, 0.0 if a.beta is None else a.beta
    return s.add("Shrink", s.x, lambd=lambd, bias=bias)


def test(op: str) -> Writer:
    """An operator of two answers, or with one operand one that is always yes."""

    def write(s: Site) -> str:
        names = [s.operand(n, "bool") for n in range(len(s.inputs))]
        return s.add(op, *names, *[s.number(1, "bool")] * (2 - len(names)))

    return write


def bitwise(s: Site) -> str:
    kind = s.dtype if s.dtype in WHOLE else "int64"
    names = [s.operand(n, kind) for n in range(len(s.inputs))]
    y = s.add("BitwiseAnd", *names, *[s.number(MARK, kind)] * (2 - len(names)))
    return y if kind == s.dtype else s.cast(y, s.dtype)


def bitwise_not(s: Site) -> str:
    if s.dtype == "bool":
        return s.add("Not", s.x)
    kind = s.dtype if s.dtype in WHOLE else "int64"
    y = s.add("BitwiseNot", s.operand(0, kind))
    return y if kind == s.dtype else s.cast(y, s.dtype)


def mod(s: Site) -> str:
    other = s.operand(1, s.dtype) if len(s.inputs) == 2 else s.number(CONSTANT)
    return s.add("Mod", s.x, other, fmod=int(s.dtype in FLOATS))


def floor_div(s: Site) -> str:
    y = str(elementwise("Div")(s))
    return s.add("Floor", y) if s.dtype in FLOATS else y


def atan2(s: Site) -> str:
    """The angle of y / x, half a turn further where x is negative."""
    y = s.add("Atan", str(elementwise("Div")(s)))
    if len(s.inputs) == 1:
        return y
    x = s.operand(1, s.dtype)
    half = s.add("Where", s.add("Less", s.x, s.number(0.0)), s.number(-pi), s.number(pi))
    turn = s.add("Where", s.add("Less", x, s.number(0.0)), half, s.number(0.0))
    return s.add("Add", y, turn)


def mean(s: Site) -> str:
    return s.add("Mean", *(s.operand(n, s.dtype) for n in range(len(s.inputs))))


def quick_gelu(s: Site) -> str:
    return s.add("Mul", s.x, s.add("Sigmoid", s.add("Mul", s.x, s.number(1.702), part="scaled")))


def log_sigmoid(s: Site) -> str:
    return s.add("Neg", s.add("Softplus", s.add("Neg", s.x, part="turned")))


OPERATORS = {
    "erf": "Erf", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos",
    "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh",
    "atanh": "Atanh", "floor": "Floor", "ceil": "Ceil", "round": "Round", "sign": "Sign",
    "reciprocal": "Reciprocal", "is_nan": "IsNaN", "is_inf": "IsInf", "mish": "Mish",
    "softsign": "Softsign",
}  # fmt: skip


def _zero_to_six(s: Site) -> str:
    return s.add("Clip", s.x, s.number(0.0), s.number(6.0))


WRITERS: dict[str, Writer] = {
    "relu": plain("Relu"),
    "relu6": _zero_to_six,
    "clip": clip,
    "abs": plain("Abs"),
    "threshold": with_alpha("ThresholdedRelu", 0.0),
    "leaky_relu": with_alpha("LeakyRelu", 0.01),
    "elu": with_alpha("Elu", 1.0),
    "selu": plain("Selu"),
    "sigmoid": plain("Sigmoid"),
    "tanh": plain("Tanh"),
    "silu": lambda s: s.add("Mul", s.x, s.add("Sigmoid", s.x)),
    "hard_sigmoid": hard_sigmoid,
    "hard_swish": plain("HardSwish"),
    "gelu": plain("Gelu", approximate="none"),
    "gelu_tanh": plain("Gelu", approximate="tanh"),
    "softplus": plain("Softplus"),
    "exp": plain("Exp"),
    "log": plain("Log"),
    "sqrt": plain("Sqrt"),
    "neg": plain("Neg"),
    "add": elementwise("Add", "Sum"),
    "sub": elementwise("Sub"),
    "mul": elementwise("Mul"),
    "div": elementwise("Div"),
    "pow": elementwise("Pow"),
    "max": elementwise("Max", "Max"),
    "min": elementwise("Min", "Min"),
    "compare": compare,
    **{ours: plain(op) for ours, op in OPERATORS.items()},
    "not": lambda s: s.add("Not", s.operand(0, "bool")),
    "bitwise_not": bitwise_not,
    "rsqrt": lambda s: s.add("Reciprocal", s.add("Sqrt", s.x)),
    "square": lambda s: s.add("Mul", s.x, s.x),
    "expm1": lambda s: s.add("Sub", s.add("Exp", s.x), s.number(1.0)),
    "log1p": lambda s: s.add("Log", s.add("Add", s.x, s.number(1.0))),
    "celu": with_alpha("Celu", 1.0),
    "thresholded_relu": with_alpha("ThresholdedRelu", 1.0),
    "shrink": shrink,
    "quick_gelu": quick_gelu,
    "log_sigmoid": log_sigmoid,
    "logical": test("And"),
    "bitwise": bitwise,
    "mod": mod,
    "floor_div": floor_div,
    "atan2": atan2,
    "mean": mean,
    "hardmax": along("Hardmax"),
    "power": power,
    "axpy": axpy,
    "softmax": along("Softmax"),
    "log_softmax": along("LogSoftmax"),
}
