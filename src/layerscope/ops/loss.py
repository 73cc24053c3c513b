"""Losses of training, and accuracy: means over all elements or rows, or one loss per element."""

from __future__ import annotations

from collections.abc import Mapping

from layerscope.errors import ShapeError
from layerscope.graph.attributes import Softmax
from layerscope.graph.types import Shape, elements
from layerscope.ops.access_map import everything
from layerscope.ops.activation import log_softmax_ops, softmax_axis, softmax_ops, softmax_rows
from layerscope.ops.autograd import Saved, every_input, nothing
from layerscope.ops.spec import FREE, Call, Ops, OpSpec, OpsRule, broadcast, passes, shapes_text


def _mean(count: int) -> Ops:
    return Ops(add=count - 1, div=1)


def _paired(call: Call) -> tuple[Shape, ...]:
    if len(call.inputs) == 2 and elements(call.inputs[0]) != elements(call.inputs[1]):
        raise ShapeError(f"a loss of {shapes_text(call.inputs)}: the two do not agree")
    return ((),)


def _labelled(call: Call) -> tuple[Shape, ...]:
    softmax_axis(call)
    if len(call.inputs) == 2 and elements(call.inputs[1]) != softmax_rows(call):
        rows = softmax_rows(call)
        raise ShapeError(
            f"a loss of {shapes_text(call.inputs)}: expected one label for each of {rows} rows"
        )
    return ((),)


def _nll(call: Call) -> Ops:
    """One log-probability a row, negated, and their mean."""
    return Ops(mul=softmax_rows(call)) + _mean(softmax_rows(call))


def _loss(per_element: Ops) -> OpsRule:
    return lambda call: per_element * elements(call.x) + _mean(elements(call.x))


def _accuracy(call: Call) -> Ops:
    """Every score against the label's, its rank against k, and the mean of what was right."""
    return Ops(comp=elements(call.x) + softmax_rows(call)) + _mean(softmax_rows(call))


def _log_loss(call: Call) -> Ops:
    """Of probabilities: one a row kept from zero, its logarithm, negated, and their mean."""
    return Ops(comp=1, exp=1, mul=1) * softmax_rows(call) + _mean(softmax_rows(call))


def _infogain(call: Call) -> Ops:
    """Softmax, then the logarithm of every one kept from zero times its gain, added up."""
    return softmax_ops(call) + Ops(comp=1, exp=1, mul=1, add=1) * elements(call.x) + Ops(div=1)


def _pairs(call: Call) -> tuple[Shape, ...]:
    a, b = call.inputs[:2]
    if a != b or not a:
        raise ShapeError(f"a loss of the pairs {a} and {b}: the two do not agree")
    return ((),)


def _contrastive(call: Call) -> Ops:
    """Squared distances; a pair's root, its distance from the margin, none below 0, squared."""
    pairs = call.x[0]
    distances = Ops(add=2, mul=1) * elements(call.x) + Ops(add=-1) * pairs
    return distances + Ops(exp=1, add=1, comp=1, mul=1) * pairs + _mean(pairs)


def _cross_entropy_saves(call: Call) -> Saved:
    """The logarithms, the labels, and the sum of the labels' weights."""
    labels = (1,) if len(call.inputs) == 2 else ()
    return Saved(inputs=labels, extra=((elements(call.x) + 1, ""),))


def _difference(call: Call) -> Saved:
    """The difference, whose sign is the gradient."""
    return Saved(extra=((elements(call.x), ""),))


def _of_one_element(unit: Ops) -> OpSpec:
    return OpSpec(
        family="elementwise",
        shape=lambda call: (broadcast(call.inputs),),
        ops=lambda call: unit * call.out_elements,
        backward=lambda call: (Ops(mul=1) * (call.out_elements * len(call.inputs)), FREE),
        saved_for_backward=every_input,
        arity=(1, 2),
        in_place=True,
    )


LOSSES = {
    "mse_loss": Ops(add=1, mul=1),
    "l1_loss": Ops(add=1, comp=1),
    # ½·d² where |d| < 1, else |d| − ½
    "smooth_l1_loss": Ops(add=2, comp=2, mul=2),
    "hinge_loss": Ops(mul=1, add=1, comp=1),
    # max(x, 0) − x·t + log(1 + exp(−|x|))
    "sigmoid_cross_entropy": Ops(comp=2, mul=2, add=3, exp=2),
}

# Losses of single elements, of which the caller takes the mean or the sum, if any.
PER_ELEMENT = {
    # −t·max(log x, −100) − (1 − t)·max(log(1 − x), −100)
    "binary_cross_entropy": Ops(comp=2, exp=2, mul=2, add=3),
    # ½·d² where |d| < δ, else δ·(|d| − ½·δ)
    "huber": Ops(add=2, comp=2, mul=3),
    # ½·d²/β where |d| < β, else |d| − ½·β; ½/β is a constant
    "smooth_l1": Ops(add=2, comp=2, mul=2),
}

# Names of these ops in other systems; see `OpSpec.names`.
NAMES: Mapping[str, Mapping[str, str]] = {
    "mse_loss": {"caffe": "EuclideanLoss"},
    "hinge_loss": {"caffe": "HingeLoss"},
    "sigmoid_cross_entropy": {"caffe": "SigmoidCrossEntropyLoss"},
}

SPECS = {
    "softmax_loss": OpSpec(
        family="loss",
        attributes=Softmax,
        names={"caffe": "SoftmaxWithLoss", "matconvnet": "softmxl"},
        shape=_labelled,
        ops=lambda call: log_softmax_ops(call) + _nll(call),
        access_map=lambda call: everything(call.inputs),
        backward=lambda call: (Ops(exp=1, add=1, mul=1) * elements(call.x), FREE),
        arity=(1, 2),
        saved_for_backward=_cross_entropy_saves,
    ),
    "accuracy": OpSpec(
        family="loss",
        attributes=Softmax,
        shape=_labelled,
        ops=_accuracy,
        access_map=lambda call: everything(call.inputs),
        backward=passes,
        arity=(1, 2),
        saved_for_backward=nothing,
    ),
    "log_loss": OpSpec(
        family="loss",
        attributes=Softmax,
        shape=_labelled,
        ops=_log_loss,
        access_map=lambda call: everything(call.inputs),
        backward=lambda call: (Ops(div=softmax_rows(call)), FREE),
        arity=(1, 2),
    ),
    "infogain_loss": OpSpec(
        family="loss",
        attributes=Softmax,
        shape=_labelled,
        ops=_infogain,
        access_map=lambda call: everything(call.inputs),
        backward=lambda call: (Ops(mul=2, add=2) * elements(call.x), FREE),
        arity=(1, 2),
        saved_for_backward=lambda call: Saved(extra=((elements(call.x), ""),)),
    ),
    "contrastive_loss": OpSpec(
        family="loss",
        shape=_pairs,
        ops=_contrastive,
        access_map=lambda call: everything(call.inputs),
        backward=lambda call: (Ops(mul=2) * elements(call.x), FREE),
        arity=(2, 3),
        saved_for_backward=lambda call: Saved(extra=((elements(call.x), ""),)),
    ),
    "nll_loss": OpSpec(
        family="loss",
        attributes=Softmax,
        shape=_labelled,
        ops=_nll,
        access_map=lambda call: everything(call.inputs),
        backward=lambda call: (Ops(mul=softmax_rows(call)), FREE),
        arity=(1, 2),
        saved_for_backward=lambda call: Saved(
            inputs=tuple(range(len(call.inputs))), extra=((1, ""),)
        ),
    ),
    **{op: _of_one_element(unit) for op, unit in PER_ELEMENT.items()},
} | {
    op: OpSpec(
        family="loss",
        names=NAMES.get(op, {}),
        shape=_paired,
        ops=_loss(per_element),
        access_map=lambda call: everything(call.inputs),
        backward=lambda call: (Ops(mul=2) * elements(call.x), FREE),
        arity=(1, 2),
        saved_for_backward=_difference if op == "l1_loss" else every_input,
    )
    for op, per_element in LOSSES.items()
}
