"""Loss functions: one value for each element or row, their mean or their sum."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from layerscope.formats.torch.aten.layout import reshape
from layerscope.formats.torch.aten.signatures import OneOutput, Scalar, takes
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, Source

NONE, MEAN, SUM = 0, 1, 2  # at::Reduction


def reduced(d: Lowering, x: TensorRef, reduction: int) -> TensorRef:
    """All elements, their mean or their sum."""
    if reduction == NONE or not x.rank:
        return x
    return d.add("reduce_mean" if reduction == MEAN else "reduce_sum", x, at=at.Reduce())


def mse_loss(d: Lowering, self: TensorRef, target: TensorRef, reduction: int = MEAN) -> TensorRef:
    if reduction == MEAN and self.shape == target.shape:
        return d.add("mse_loss", self, target)
    return reduced(d, d.add("square", d.add("sub", self, target)), reduction)


def l1_loss(d: Lowering, self: TensorRef, target: TensorRef, reduction: int = MEAN) -> TensorRef:
    if reduction == MEAN and self.shape == target.shape:
        return d.add("l1_loss", self, target)
    return reduced(d, d.add("abs", d.add("sub", self, target)), reduction)


def smooth_l1_loss(
    d: Lowering, self: TensorRef, target: TensorRef, reduction: int = MEAN, beta: float = 1.0
) -> TensorRef:
    return reduced(d, d.add("smooth_l1", self, target), reduction)


def huber_loss(
    d: Lowering, self: TensorRef, target: TensorRef, reduction: int = MEAN, delta: float = 1.0
) -> TensorRef:
    return reduced(d, d.add("huber", self, target), reduction)


def binary_cross_entropy(
    d: Lowering,
    self: TensorRef,
    target: TensorRef,
    weight: TensorRef | None = None,
    reduction: int = MEAN,
) -> TensorRef:
    losses = d.add("binary_cross_entropy", self, target)
    return reduced(d, losses if weight is None else d.add("mul", losses, weight), reduction)


def binary_cross_entropy_with_logits(
    d: Lowering,
    self: TensorRef,
    target: TensorRef,
    weight: TensorRef | None = None,
    pos_weight: TensorRef | None = None,
    reduction: int = MEAN,
) -> TensorRef:
    """(1 − t)·x − w·log σ(x), w = 1 + (p − 1)·t for a weight p of positive examples."""
    if pos_weight is not None or weight is not None:
        d.source = Source(op=f"{d.source.op}.weight")
    logs = d.add("log_sigmoid", self)
    if pos_weight is not None:
        scale = d.add("add", d.add("mul", d.add("sub", pos_weight), target))
        logs = d.add("mul", logs, scale)
    losses = d.add("sub", d.add("mul", d.add("sub", target), self), logs)
    return reduced(d, losses if weight is None else d.add("mul", losses, weight), reduction)


def soft_margin_loss(
    d: Lowering, self: TensorRef, target: TensorRef, reduction: int = MEAN
) -> TensorRef:
    """log(1 + exp(−t·x))"""
    power = d.add("exp", d.add("mul", d.add("neg", target), self))
    return reduced(d, d.add("log1p", power), reduction)


class MultiMarginLossArgs(Struct, frozen=True):
    """Arguments of aten::multi_margin_loss."""

    self: TensorRef
    target: TensorRef
    p: Scalar = 1
    margin: Scalar = 1
    weight: TensorRef | None = None
    reduction: int = MEAN


@takes(MultiMarginLossArgs)
def multi_margin_loss(d: Lowering, args: MultiMarginLossArgs) -> TensorRef:
    """The mean of max(0, margin − x[label] + x[class]) ** p over classes, the label included."""
    rows, classes = (1, 1, *args.self.shape)[-2:]
    x, labels = reshape(d, args.self, (rows, classes)), reshape(d, args.target, (rows, 1))
    label = d.add("gather", x, labels, at=at.Gather(1, elements=True))
    losses = d.add("relu", d.add("add", d.add("sub", x, label)), at=at.Activation())
    if args.p == 2:
        losses = d.add("square", losses)
    if args.weight is not None:
        scales = d.add("gather", args.weight, labels, at=at.Gather(0))
        losses = d.add("mul", losses, reshape(d, scales, (rows, 1)))
    means = d.add("reduce_mean", losses, at=at.Reduce((1,)))
    return reduced(d, reshape(d, means, args.target.shape), args.reduction)


def multilabel_margin_loss(
    d: Lowering, self: TensorRef, target: TensorRef, reduction: int = MEAN
) -> TensorRef:
    """Every label compared with every other class; the count assumes the most pairs."""
    rows, classes = (1, 1, *self.shape)[-2:]
    pairs = rows * (classes // 2) * (classes - classes // 2)
    shape = () if reduction != NONE else self.shape[:-1]
    total = 0 if reduction == NONE else rows - 1
    costs = at.CustomCost(
        (shape,), (self.dtype,), add=3 * pairs + total, comp=pairs, div=rows,
        estimate="half of the classes are labels, which makes the most pairs",
    )  # fmt: skip
    return d.add("custom", self, target, at=costs)


def ctc_loss(
    d: Lowering,
    log_probs: TensorRef,
    targets: TensorRef,
    input_lengths: TensorRef | Sequence[int],
    target_lengths: TensorRef | Sequence[int],
    *_: object,
    **__: object,
) -> TensorRef:
    """The forward algorithm: each state of a step is computed from three of the step before."""
    steps = log_probs.shape[0]
    rows = log_probs.shape[1] if log_probs.rank == 3 else 1
    if not isinstance(target_lengths, TensorRef):
        states = sum([2 * length + 1 for length in target_lengths])
    elif targets.rank == 2:
        states = rows * (2 * targets.shape[1] + 1)
    else:
        states = 2 * targets.shape[0] + rows
    cells = states * steps
    shape = (rows,) if log_probs.rank == 3 else ()
    costs = at.CustomCost(
        (shape,), (log_probs.dtype,), comp=2 * cells, add=7 * cells, exp=4 * cells,
        estimate="all steps and labels of a batch, the longest of each",
    )  # fmt: skip
    return d.add("custom", log_probs, targets, at=costs)


class CrossEntropyLossArgs(Struct, frozen=True):
    """Arguments of aten::cross_entropy_loss."""

    self: TensorRef
    target: TensorRef
    weight: TensorRef | None = None
    reduction: int = MEAN
    ignore_index: int = -100
    label_smoothing: float = 0.0


@takes(CrossEntropyLossArgs)
def cross_entropy_loss(d: Lowering, args: CrossEntropyLossArgs) -> TensorRef:
    """The mean over class labels; PyTorch composes other forms of log_softmax and nll_loss."""
    if args.target.shape == args.self.shape or args.weight is not None or args.reduction != MEAN:
        raise Unsupported(
            "cross entropy with probabilities, weights or another reduction than mean"
        )
    if args.label_smoothing:
        d.source = Source(op=f"{d.source.op}.smoothed")
    axis = 0 if args.self.rank == 1 else 1
    return d.add("softmax_loss", args.self, args.target, at=at.Softmax(axis))


def nll_loss(
    d: Lowering,
    self: TensorRef,
    target: TensorRef,
    weight: TensorRef | None = None,
    reduction: int = MEAN,
    *_: object,
) -> TensorRef:
    """Minus the log-probability of each label, times the weight of its class."""
    axis = 0 if self.rank == 1 else 1
    if reduction == MEAN and weight is None:
        return d.add("nll_loss", self, target, at=at.Softmax(axis))
    labels = reshape(d, target, _with_axis(target.shape, axis))
    taken = d.add("gather", self, labels, at=at.Gather(axis, elements=True))
    rows = d.add("neg", reshape(d, taken, target.shape))
    if weight is None:
        return reduced(d, rows, reduction)
    d.source = Source(op=f"{d.source.op}.weight")
    weights = d.add("gather", weight, target, at=at.Gather(0))
    rows = d.add("mul", rows, weights)
    if reduction != MEAN or not rows.rank:
        return reduced(d, rows, reduction)
    sums = [d.add("reduce_sum", each, at=at.Reduce()) for each in (rows, weights)]
    return d.add("div", *sums)


def _with_axis(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], 1, *shape[axis:])


TABLE: dict[str, OneOutput] = {
    "mse_loss": mse_loss,
    "l1_loss": l1_loss,
    "smooth_l1_loss": smooth_l1_loss,
    "huber_loss": huber_loss,
    "binary_cross_entropy": binary_cross_entropy,
    "binary_cross_entropy_with_logits": binary_cross_entropy_with_logits,
    "soft_margin_loss": soft_margin_loss,
    "multi_margin_loss": multi_margin_loss,
    "multilabel_margin_loss_forward": multilabel_margin_loss,
    "_ctc_loss": ctc_loss,
    "cross_entropy_loss": cross_entropy_loss,
    "nll_loss_nd": nll_loss,
    "nll_loss": nll_loss,
    "nll_loss2d": nll_loss,
    "nll_loss_forward": nll_loss,
    "nll_loss2d_forward": nll_loss,
}
