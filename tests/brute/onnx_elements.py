"""How onnxruntime runs functions of elements, losses, and ops that only move elements."""

from __future__ import annotations

import math
from collections.abc import Callable

from layerscope.graph.attributes import Crop, Pad, Reshape, Softmax, Sum
from tests.brute.engine import Model, Writer, along_axis, plain
from tests.brute.pointwise import CONSTANT


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


def elementwise(op: str, many: bool = False) -> Writer:
    """Sum, Max and Min take any number; the others are chained. A lone operand meets a constant."""

    def write(m: Model) -> str:
        names = [m.of(n) for n in range(len(m.inputs))]
        if isinstance(m.attributes, Sum):
            for n in range(m.attributes.scaled):
                names[n] = m.node("Mul", names[n], m.number(CONSTANT))
        if len(names) == 1:
            names.append(m.number(CONSTANT))
        if many:
            return m.node(op, *names)
        result = names[0]
        for name in names[1:]:
            result = m.node(op, result, name)
        return result

    return write


def compare(m: Model) -> str:
    other = m.of(1) if len(m.inputs) == 2 else m.number(CONSTANT)
    return m.node("Cast", m.node("Greater", m.x, other), to=1)


def along(op: str) -> Writer:
    return lambda m: m.node(op, m.x, axis=(m.attributes or Softmax()).axis)


def labelled(op: str) -> Writer:
    """ONNX has the classes on axis 1."""

    def write(m: Model) -> str:
        axis = (m.attributes or Softmax()).axis % len(m.shape)
        order = [axis if n == 1 else n - (1 < n <= axis) for n in range(len(m.shape))]
        x = m.node("Transpose", m.x, perm=order) if axis != 1 else m.x
        rows = [size for n, size in enumerate(m.shape) if n != axis]
        labels = m.of(1) if len(m.inputs) == 2 else m.ints(*[0] * math.prod(rows))
        return m.node(op, x, m.node("Reshape", labels, m.ints(*rows)), reduction="mean")

    return write


def paired(terms: Callable[[Model, str, str], str]) -> Writer:
    def write(m: Model) -> str:
        target = m.number(1.0)
        if len(m.inputs) == 2:
            target = m.node("Reshape", m.of(1), m.ints(*m.shape))
        return m.node("ReduceMean", terms(m, m.x, target), keepdims=0)

    return write


def _squares(m: Model, x: str, t: str) -> str:
    gap = m.node("Sub", x, t)
    return m.node("Mul", gap, gap)


def _cross_entropy(m: Model, x: str, t: str) -> str:
    decay = m.node("Exp", m.node("Neg", m.node("Abs", x)))
    soft = m.node("Log", m.node("Add", decay, m.number(1.0)))
    hard = m.node("Sub", m.node("Relu", x), m.node("Mul", x, t))
    return m.node("Add", hard, soft)


def concat(m: Model) -> str:
    names = [m.of(n) for n in range(len(m.inputs))]
    return m.node("Concat", *names, axis=m.attributes.axis if m.attributes else 1)


def split(m: Model) -> tuple[str, ...]:
    a = m.attributes
    return m.several("Split", m.x, m.ints(*a.sizes), outputs=len(a.sizes), axis=a.axis)


def cut(m: Model) -> str:
    a = m.attributes
    steps = a.steps or (1,) * len(a.axes)
    return m.node("Slice", m.x, *(m.ints(*each) for each in (a.starts, a.ends, a.axes, steps)))


def flatten(m: Model) -> str:
    """ONNX's Flatten makes a matrix; any other merging of axes is a Reshape."""
    a = m.attributes
    if a is None or (a.start, a.end) == (1, -1):
        return m.node("Flatten", m.x, axis=1)
    first, last = a.start % len(m.shape), a.end % len(m.shape)
    merged = math.prod(m.shape[first : last + 1])
    return m.node("Reshape", m.x, m.ints(*m.shape[:first], merged, *m.shape[last + 1 :]))


def reshape(m: Model) -> str:
    """A shape for some axes is put between the others."""
    a: Reshape = m.attributes
    first = a.axis if a.axis >= 0 else len(m.shape) + 1 + a.axis
    last = len(m.shape) if a.axes == -1 else first + a.axes
    own = [m.shape[first + n] if size == 0 and first else size for n, size in enumerate(a.shape)]
    return m.node("Reshape", m.x, m.ints(*m.shape[:first], *own, *m.shape[last:]))


def pad(m: Model) -> str:
    a: Pad = m.attributes
    begins, ends = zip(*a.pads, strict=True)
    return m.node("Pad", m.x, m.ints(*begins, *ends), mode=a.mode)


def crop(m: Model) -> str:
    a: Crop = m.attributes or Crop()
    axes = range(a.axis % len(m.shape), len(m.shape))
    offsets = a.offsets if len(a.offsets) == len(axes) else a.offsets * len(axes)
    sizes = [m.inputs[1].shape[axis] for axis in axes]
    ends = [o + s for o, s in zip(offsets, sizes, strict=True)]
    return m.node("Slice", m.x, m.ints(*offsets), m.ints(*ends), m.ints(*axes))


def hard_sigmoid(m: Model) -> str:
    return m.node("HardSigmoid", m.x, alpha=m.attributes.alpha, beta=m.attributes.beta)


WRITERS: dict[str, Writer] = {
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
    "add": elementwise("Sum", many=True),
    "sub": elementwise("Sub"),
    "mul": elementwise("Mul"),
    "div": elementwise("Div"),
    "pow": elementwise("Pow"),
    "max": elementwise("Max", many=True),
    "min": elementwise("Min", many=True),
    "compare": compare,
    "softmax": along("Softmax"),
    "log_softmax": along("LogSoftmax"),
    "softmax_loss": labelled("SoftmaxCrossEntropyLoss"),
    "nll_loss": labelled("NegativeLogLikelihoodLoss"),
    "mse_loss": paired(_squares),
    "l1_loss": paired(lambda m, x, t: m.node("Abs", m.node("Sub", x, t))),
    "hinge_loss": paired(
        lambda m, x, t: m.node("Relu", m.node("Sub", m.number(1.0), m.node("Mul", x, t)))
    ),
    "sigmoid_cross_entropy": paired(_cross_entropy),
    "reshape": reshape,
    "flatten": flatten,
    "identity": plain("Identity"),
    "dropout": plain("Dropout"),
    "concat": concat,
    "split": split,
    "slice": cut,
    "permute": lambda m: m.node("Transpose", m.x, perm=m.attributes.order),
    "pad": pad,
    "crop": crop,
}
