"""Functions of elements: activations, and functions of several tensors broadcast together."""

from __future__ import annotations

from layerscope.graph.attributes import Activation, Power, Softmax, Sum
from layerscope.lower.draft import Site, Writer, plain

CONSTANT = 1.5  # what a lone operand meets: the graph does not tell
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
    """An operator along one axis."""
    return lambda s: s.add(op, s.x, axis=(s.attributes or Softmax()).axis)


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
    "power": power,
    "axpy": axpy,
    "softmax": along("Softmax"),
    "log_softmax": along("LogSoftmax"),
}
