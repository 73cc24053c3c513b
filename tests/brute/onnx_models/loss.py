"""ONNX models of losses and accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable

from layerscope.graph.attributes import Softmax
from tests.brute.engine import Model, Writer
from tests.brute.loss import GAIN, LEAST, MARGIN


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


def _labels(m: Model) -> str:
    rows = [size for n, size in enumerate(m.shape) if n != 1]
    given = m.of(1) if len(m.inputs) == 2 else m.ints(*[0] * math.prod(rows))
    return m.node("Reshape", given, m.ints(*rows))


def accuracy(m: Model) -> str:
    best = m.node("ArgMax", m.x, axis=1, keepdims=0)
    return m.node("ReduceMean", m.cast(m.node("Equal", best, _labels(m)), "fp32"), keepdims=0)


def log_loss(m: Model) -> str:
    logs = m.node("Log", m.node("Max", m.x, m.number(LEAST)))
    return m.node("NegativeLogLikelihoodLoss", logs, _labels(m), reduction="mean")


def infogain_loss(m: Model) -> str:
    chances = m.node("Max", m.node("Softmax", m.x, axis=1), m.number(LEAST))
    rows = math.prod(m.shape) // m.shape[1]
    gains = m.node("Mul", m.node("Log", chances), m.number(-GAIN / rows))
    return m.node("ReduceSum", gains, keepdims=0)


def smooth_l1_loss(m: Model) -> str:
    target = m.of(1) if len(m.inputs) == 2 else m.number(1.0)
    gap = m.node("Sub", m.x, target)
    size = m.node("Abs", gap)
    curve = m.node("Mul", m.node("Mul", gap, gap), m.number(0.5))
    line = m.node("Sub", size, m.number(0.5))
    return m.node(
        "ReduceMean", m.node("Where", m.node("Less", size, m.number(1.0)), curve, line), keepdims=0
    )


def contrastive_loss(m: Model) -> str:
    gap = m.node("Flatten", m.node("Sub", m.x, m.of(1)), axis=1)
    far = m.node("ReduceL2", gap, m.ints(1), keepdims=0)
    short = m.node("Relu", m.node("Sub", m.number(MARGIN), far))
    return m.node("ReduceMean", m.node("Mul", short, short), keepdims=0)


MODELS: dict[str, Writer] = {
    "softmax_loss": labelled("SoftmaxCrossEntropyLoss"),
    "nll_loss": labelled("NegativeLogLikelihoodLoss"),
    "mse_loss": paired(_squares),
    "l1_loss": paired(lambda m, x, t: m.node("Abs", m.node("Sub", x, t))),
    "hinge_loss": paired(
        lambda m, x, t: m.node("Relu", m.node("Sub", m.number(1.0), m.node("Mul", x, t)))
    ),
    "sigmoid_cross_entropy": paired(_cross_entropy),
    "accuracy": accuracy,
    "log_loss": log_loss,
    "infogain_loss": infogain_loss,
    "smooth_l1_loss": smooth_l1_loss,
    "contrastive_loss": contrastive_loss,
}
