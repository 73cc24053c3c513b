"""Training losses and accuracy, each a scalar."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from layerscope.graph.attributes import Softmax
from layerscope.lower.builder import NO_OPERATOR, Emitter, NodeEmitter

LEAST = {
    "fp16": 1e-7,
    "fp32": 1e-20,
    "fp64": 1e-20,
}  # lower bound of probabilities before the logarithm
GAIN, MARGIN = 0.5, 5.0  # a graph does not contain them


def _rows(node: NodeEmitter) -> tuple[str, str]:
    """Scores with the classes on axis 1, as ONNX has them, and a label for each row."""
    axis = (node.attributes or Softmax()).axis % node.rank
    order = [n for n in range(node.rank) if n != axis]
    order.insert(min(1, len(order)), axis)
    x = node.x
    if node.rank == 1:
        x = node.reshape(x, (1, -1))
    elif axis != 1:
        x = node.add("Transpose", x, perm=order)
    rows = [size for n, size in enumerate(node.shape) if n != axis] or [1]
    if len(node.inputs) == 1:
        return x, node.builder.full(tuple(rows), 0, "int64")
    return x, node.reshape(node.operand(1, "int64"), rows)


def labelled(op: str) -> Emitter:
    """Emitter for ONNX's losses with class labels."""
    return lambda node: node.add(op, *_rows(node), reduction="mean")


def log_loss(node: NodeEmitter) -> str:
    x, labels = _rows(node)
    logs = node.add("Log", node.add("Clip", x, node.number(LEAST[node.dtype])))
    return node.add("NegativeLogLikelihoodLoss", logs, labels, reduction="mean")


def accuracy(node: NodeEmitter) -> str:
    x, labels = _rows(node)
    right = node.add("Equal", node.add("ArgMax", x, axis=1, keepdims=0), labels)
    return node.add("ReduceMean", node.cast(right, node.dtype), keepdims=0)


def infogain(node: NodeEmitter) -> str:
    """Sum of log-probabilities times a gain, which is the same for all classes here."""
    axis = (node.attributes or Softmax()).axis
    parts = node.add("Softmax", node.x, axis=axis)
    logs = node.add("Log", node.add("Clip", parts, node.number(LEAST[node.dtype])))
    total = node.add("ReduceSum", node.add("Mul", logs, node.number(-GAIN)), keepdims=0)
    rows = prod(node.shape) // node.shape[axis]
    return node.add("Div", total, node.number(float(rows)))


def contrastive(node: NodeEmitter) -> str:
    """The third input says which pairs are similar; without it none are."""
    difference = node.add("Sub", node.x, node.inputs[1])
    axes = node.ints(*range(1, node.rank)) if node.rank > 1 else ""
    far = (
        node.add("ReduceSumSquare", difference, axes, keepdims=0)
        if axes
        else node.add("Mul", difference, difference)
    )
    short = node.add("Relu", node.add("Sub", node.number(MARGIN), node.add("Sqrt", far)))
    near = node.add("Mul", short, short)
    if len(node.inputs) == 3:
        similar = node.cast(node.reshape(node.inputs[2], (-1,)), "bool")
    else:
        similar = node.builder.full(node.shape[:1], False, "bool")
    return node.add("ReduceMean", node.add("Where", similar, far, near), keepdims=0)


def paired(terms: Callable[[NodeEmitter, str, str], str]) -> Emitter:
    """Emitter for the mean of `terms` of input and target; a missing target is 1."""

    def emit(node: NodeEmitter) -> str:
        target = node.number(1.0)
        if len(node.inputs) == 2:
            target = node.reshape(node.operand(1, node.dtype), node.shape)
        return node.add("ReduceMean", terms(node, node.operand(0, node.dtype), target), keepdims=0)

    return emit


def _squares(node: NodeEmitter, x: str, t: str) -> str:
    difference = node.add("Sub", x, t)
    return node.add("Mul", difference, difference)


def _distances(node: NodeEmitter, x: str, t: str) -> str:
    return node.add("Abs", node.add("Sub", x, t))


def _smooth(node: NodeEmitter, x: str, t: str) -> str:
    """½·d² where |d| < 1, else |d| − ½."""
    far = _distances(node, x, t)
    half = node.number(0.5)
    square = node.add("Mul", node.add("Mul", far, far), half)
    near = node.add("Less", far, node.number(1.0))
    return node.add("Where", near, square, node.add("Sub", far, half))


def _hinge(node: NodeEmitter, x: str, t: str) -> str:
    return node.add("Relu", node.add("Sub", node.number(1.0), node.add("Mul", x, t)))


def _cross_entropy(node: NodeEmitter, x: str, t: str) -> str:
    """max(x, 0) − x·t + log(1 + exp(−|x|))."""
    decay = node.add("Exp", node.add("Neg", node.add("Abs", x)))
    soft = node.add("Log", node.add("Add", decay, node.number(1.0)))
    return node.add("Add", node.add("Sub", node.add("Relu", x), node.add("Mul", x, t)), soft)


EMITTERS: dict[str, Emitter] = {
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

REFUSED = dict.fromkeys(("binary_cross_entropy", "huber", "smooth_l1"), NO_OPERATOR)
