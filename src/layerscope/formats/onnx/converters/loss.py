"""Cross-entropy and negative log-likelihood losses."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.tensor_info import TensorInfo
from layerscope.graph import attributes as at


def loss(node: OnnxNode) -> None:
    """SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss."""
    reduction = node.str_attr("reduction", "mean")
    if reduction not in ("none", "sum", "mean"):
        raise ShapeError(f"reduction {reduction!r}, expected none, sum or mean")
    x, labels, weight = node.shape(), node.shape(1), node.optional(2)  # names differ
    if len(x) < 2 or labels != (x[0], *x[2:]):
        raise ShapeError(f"labels {labels} of scores {x}")
    soft = node.op == "SoftmaxCrossEntropyLoss"
    names = node.outputs[:1]
    if reduction == "mean" and weight is None:
        op = "softmax_loss" if soft else "nll_loss"
        node.emit(op, (node.input(), node.input(1)), outputs=names)
        node.extra_output(1, x, node.dtype())
        return
    scores = node.input()
    if soft:
        log = node.outputs[1:2] if len(node.outputs) > 1 else None
        scores = node.emit(
            "log_softmax", (scores,), at.Softmax(1), part="log_softmax", outputs=log
        )[0]  # fmt: skip
    y = _picked(node, scores)
    if weight is not None:
        weights = node.emit("gather", (weight, node.input(1)), at.Gather(0), part="weights")[0]
        part = "" if reduction == "none" else "weighted"
        y = node.emit("mul", (y, weights), part=part, outputs=None if part else names)[0]
    elif reduction == "none":
        y = node.emit("neg", (y,), outputs=names)[0]
    if reduction == "none":
        return
    every = at.Reduce(tuple(range(len(labels))))
    if weight is None or reduction == "sum":
        node.emit("reduce_sum", (y,), every, outputs=names)
        return
    total = node.emit("reduce_sum", (y,), every, part="sum")[0]
    scale = node.emit("reduce_sum", (weights,), every, part="sum_of_weights")[0]
    node.emit("div", (total, scale), outputs=names)


def _picked(node: OnnxNode, scores: TensorInfo) -> TensorInfo:
    """The score of each label, negated unless the caller does it."""
    x = node.shape()
    shape = (x[0], 1, *x[2:])
    labels = node.emit("reshape", (node.input(1),), at.Reshape(shape), part="labels")[0]
    y = node.emit("gather", (scores, labels), at.Gather(1, elements=True), part="picked")[0]
    y = node.emit("reshape", (y,), at.Reshape((x[0], *x[2:])), part="of_labels")[0]
    if node.has(2) or node.str_attr("reduction", "mean") != "none":
        y = node.emit("neg", (y,), part="negative")[0]
    return y


OPERATORS: ConverterTable = {
    ("", "SoftmaxCrossEntropyLoss"): Converter(loss, "scores labels weights"),
    ("", "NegativeLogLikelihoodLoss"): Converter(loss, "input target weight"),
}
