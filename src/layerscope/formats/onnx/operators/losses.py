"""Losses of class scores."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.known import Known
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at


def loss(s: Site) -> None:
    """SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss."""
    reduction = s.text("reduction", "mean")
    if reduction not in ("none", "sum", "mean"):
        raise ShapeError(f"reduction {reduction!r}, expected none, sum or mean")
    x, labels = s.shape(0), s.shape(1)
    if len(x) < 2 or labels != (x[0], *x[2:]):
        raise ShapeError(f"labels {labels} of scores {x}")
    soft = s.op == "SoftmaxCrossEntropyLoss"
    names = s.operator.outputs[:1]
    if reduction == "mean" and not s.has(2):
        op = "softmax_loss" if soft else "nll_loss"
        s.emit(op, (s.given(0), s.given(1)), outputs=names)
        s.extra(1, x, s.dtype(0))
        return
    scores = s.given(0)
    if soft:
        log = s.operator.outputs[1:2] if len(s.operator.outputs) > 1 else None
        scores = s.emit(
            "log_softmax", (scores,), at.Softmax(1), part="log_softmax", outputs=log
        )[0]  # fmt: skip
    made = _picked(s, scores)
    if s.has(2):
        weights = s.emit("gather", (s.given(2), s.given(1)), at.Gather(0), part="weights")[0]
        part = "" if reduction == "none" else "weighted"
        made = s.emit("mul", (made, weights), part=part, outputs=None if part else names)[0]
    elif reduction == "none":
        made = s.emit("neg", (made,), outputs=names)[0]
    if reduction == "none":
        return
    every = at.Reduce(tuple(range(len(labels))))
    if not s.has(2) or reduction == "sum":
        s.emit("reduce_sum", (made,), every, outputs=names)
        return
    total = s.emit("reduce_sum", (made,), every, part="sum")[0]
    scale = s.emit("reduce_sum", (weights,), every, part="sum_of_weights")[0]
    s.emit("div", (total, scale), outputs=names)


def _picked(s: Site, scores: Known) -> Known:
    """The score of each label; of its sign the caller or the weights take care."""
    x = s.shape(0)
    shape = (x[0], 1, *x[2:])
    labels = s.emit("reshape", (s.given(1),), at.Reshape(shape), part="labels")[0]
    made = s.emit("gather", (scores, labels), at.Gather(1, elements=True), part="picked")[0]
    made = s.emit("reshape", (made,), at.Reshape((x[0], *x[2:])), part="of_labels")[0]
    if s.has(2) or s.text("reduction", "mean") != "none":
        made = s.emit("neg", (made,), part="negative")[0]
    return made


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "SoftmaxCrossEntropyLoss"): loss,
    ("", "NegativeLogLikelihoodLoss"): loss,
}
