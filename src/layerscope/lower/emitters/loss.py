"""Losses of training and the share of right answers, each a scalar."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from layerscope.graph.attributes import Softmax
from layerscope.lower.builder import Site, Writer

LEAST = {"fp16": 1e-7, "fp32": 1e-20, "fp64": 1e-20}  # what a logarithm is taken of
GAIN, MARGIN = 0.5, 5.0  # which the graph does not tell


def _rows(s: Site) -> tuple[str, str]:
    """Scores with the classes on axis 1, as ONNX has them, and a label for each row."""
    axis = (s.attributes or Softmax()).axis % s.rank
    order = [n for n in range(s.rank) if n != axis]
    order.insert(min(1, len(order)), axis)
    x = s.x
    if s.rank == 1:
        x = s.reshape(x, (1, -1))
    elif axis != 1:
        x = s.add("Transpose", x, perm=order)
    rows = [size for n, size in enumerate(s.shape) if n != axis] or [1]
    if len(s.inputs) == 1:
        return x, s.draft.full(tuple(rows), 0, "int64")
    return x, s.reshape(s.operand(1, "int64"), rows)


def labelled(op: str) -> Writer:
    """ONNX's own losses of labels."""
    return lambda s: s.add(op, *_rows(s), reduction="mean")


def log_loss(s: Site) -> str:
    x, labels = _rows(s)
    logs = s.add("Log", s.add("Clip", x, s.number(LEAST[s.dtype])))
    return s.add("NegativeLogLikelihoodLoss", logs, labels, reduction="mean")


def accuracy(s: Site) -> str:
    x, labels = _rows(s)
    right = s.add("Equal", s.add("ArgMax", x, axis=1, keepdims=0), labels)
    return s.add("ReduceMean", s.cast(right, s.dtype), keepdims=0)


def infogain(s: Site) -> str:
    """Every logarithm times a gain, here the same for all."""
    axis = (s.attributes or Softmax()).axis
    parts = s.add("Softmax", s.x, axis=axis)
    logs = s.add("Log", s.add("Clip", parts, s.number(LEAST[s.dtype])))
    total = s.add("ReduceSum", s.add("Mul", logs, s.number(-GAIN)), keepdims=0)
    rows = prod(s.shape) // s.shape[axis]
    return s.add("Div", total, s.number(float(rows)))


def contrastive(s: Site) -> str:
    """Pairs should be far from each other where no third input says which are alike."""
    gap = s.add("Sub", s.x, s.inputs[1])
    axes = s.ints(*range(1, s.rank)) if s.rank > 1 else ""
    far = s.add("ReduceSumSquare", gap, axes, keepdims=0) if axes else s.add("Mul", gap, gap)
    short = s.add("Relu", s.add("Sub", s.number(MARGIN), s.add("Sqrt", far)))
    near = s.add("Mul", short, short)
    if len(s.inputs) == 3:
        alike = s.cast(s.reshape(s.inputs[2], (-1,)), "bool")
    else:
        alike = s.draft.full(s.shape[:1], False, "bool")
    return s.add("ReduceMean", s.add("Where", alike, far, near), keepdims=0)


def paired(terms: Callable[[Site, str, str], str]) -> Writer:
    """The mean of terms of two inputs; a lone one is compared with 1."""

    def write(s: Site) -> str:
        target = s.number(1.0)
        if len(s.inputs) == 2:
            target = s.reshape(s.operand(1, s.dtype), s.shape)
        return s.add("ReduceMean", terms(s, s.operand(0, s.dtype), target), keepdims=0)

    return write


def _squares(s: Site, x: str, t: str) -> str:
    gap = s.add("Sub", x, t)
    return s.add("Mul", gap, gap)


def _distances(s: Site, x: str, t: str) -> str:
    return s.add("Abs", s.add("Sub", x, t))


def _smooth(s: Site, x: str, t: str) -> str:
    """½·d² where |d| < 1, else |d| − ½."""
    far = _distances(s, x, t)
    half = s.number(0.5)
    square = s.add("Mul", s.add("Mul", far, far), half)
    near = s.add("Less", far, s.number(1.0))
    return s.add("Where", near, square, s.add("Sub", far, half))


def _hinge(s: Site, x: str, t: str) -> str:
    return s.add("Relu", s.add("Sub", s.number(1.0), s.add("Mul", x, t)))


def _cross_entropy(s: Site, x: str, t: str) -> str:
    """max(x, 0) − x·t + log(1 + exp(−|x|))."""
    decay = s.add("Exp", s.add("Neg", s.add("Abs", x)))
    soft = s.add("Log", s.add("Add", decay, s.number(1.0)))
    return s.add("Add", s.add("Sub", s.add("Relu", x), s.add("Mul", x, t)), soft)


WRITERS: dict[str, Writer] = {
    "softmax_loss": labelled("SoftmaxCrossEntropyLoss"),
    "nll_loss": labelled("NegativeLogLikelihoodLoss"),
    "log_loss": log_loss,
    "infogain_loss": infogain,
    "accuracy": accuracy,
    "contrastive_loss": contrastive,
    "mse_loss": paired(_squares),
    "l1_loss": paired(_distances),
    "smooth_l1_loss": paired(_smooth),
    "hinge_loss": paired(_hinge),
    "sigmoid_cross_entropy": paired(_cross_entropy),
}
