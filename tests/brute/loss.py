"""Loops and cases of losses and accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from layerscope.graph import attributes as at
from tests.brute.activation import log_softmax, softmax, softmax_axis
from tests.brute.arrays import Array, Index, Run, accumulate, places, split_axes, total
from tests.brute.case import Case
from tests.brute.elementwise import pointwise
from tests.brute.pooling import mean_of
from tests.brute.scalar import Scalar

GAIN = 0.5  # of infogain loss, for every pair of classes

LEAST = 1e-20  # a probability is never taken to be less

MARGIN = 5.0  # of contrastive loss


def _rows(run: Run) -> Iterator[list[Index]]:
    a: at.Softmax = run.attributes or at.Softmax()
    return split_axes(run.x.shape, [a.axis % len(run.x.shape)])


def _labels(run: Run) -> Iterator[int]:
    given = run.inputs[1].values() if len(run.inputs) == 2 else [0.0] * len(run.x.cells)
    return map(int, given)


def _scalar(number: Scalar) -> list[Array]:
    return [Array((), {(): number})]


def accuracy(run: Run) -> list[Array]:
    """A row is right if no score but its own is as large as that of its label."""
    right = []
    for row, label in zip(_rows(run), _labels(run), strict=False):
        own = run.x[row[label]]
        above = 0
        for index in row:
            own.above(run.x[index], 0.0, 1.0)
            above += run.x[index].value >= own.value
        right.append(run.number(2.0).above(float(above), 1.0, 0.0))
    return _scalar(mean_of(right))


def log_loss(run: Run) -> list[Array]:
    pairs = zip(_rows(run), _labels(run), strict=False)
    return _scalar(mean_of([-run.x[row[n]].larger(LEAST).apply(math.log) for row, n in pairs]))


def infogain_loss(run: Run) -> list[Array]:
    """The gains of a row of the matrix, negated and divided by the rows, are known beforehand."""
    (chances,) = softmax(run)
    rows = list(_rows(run))
    terms = (chances[index].larger(LEAST).apply(math.log) * -GAIN for row in rows for index in row)
    return _scalar(accumulate(run.number(0.0), terms) / float(len(rows)))


def contrastive_loss(run: Run) -> list[Array]:
    """Of pairs that should be far from each other."""
    a, b = run.inputs[:2]
    terms = []
    for group in split_axes(a.shape, range(1, len(a.shape))):
        gaps = [a[index] - b[index] for index in group]
        short = (MARGIN - total(gap * gap for gap in gaps).apply(math.sqrt)).larger(0.0)
        terms.append(short * short)
    return _scalar(mean_of(terms))


def _mean(numbers: list[Scalar]) -> list[Array]:
    return [Array((), {(): total(numbers) / float(len(numbers))})]


def nll_loss(run: Run, logs: Array | None = None) -> list[Array]:
    """The mean of minus the log-probability of each row's label; labels left out are all 0."""
    source = logs or run.x
    labels = iter(run.inputs[1].values()) if len(run.inputs) == 2 else None
    rows = split_axes(run.x.shape, [softmax_axis(run)])
    return _mean([-source[row[int(next(labels)) if labels else 0]] for row in rows])


def softmax_loss(run: Run) -> list[Array]:
    return nll_loss(run, log_softmax(run)[0])


def _cross_entropy(x: Scalar, t: Scalar) -> Scalar:
    """max(x, 0) − x·t + log(1 + e^−|x|), which cannot overflow."""
    soft = ((-abs(x)).apply(math.exp) + 1.0).apply(math.log)
    return x.larger(0.0) - x * t + soft


PAIRS: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "mse_loss": lambda x, t: _square(x - t),
    "l1_loss": lambda x, t: abs(x - t),
    "smooth_l1_loss": lambda x, t: _smooth(x - t),
    "hinge_loss": lambda x, t: (1.0 - x * t).larger(0.0),
    "sigmoid_cross_entropy": _cross_entropy,
}


def _square(x: Scalar) -> Scalar:
    return x * x


def _smooth(gap: Scalar) -> Scalar:
    """½·d² where |d| < 1, else |d| − ½."""
    size = abs(gap)
    line = size - 0.5
    curve = gap * gap * 0.5
    return size.above(1.0, line, curve)


def paired(op: str) -> Callable[[Run], list[Array]]:
    """The mean over all elements of a function of prediction and target, in row-major order."""

    def run_it(run: Run) -> list[Array]:
        targets = [run.number(1.0)] * len(run.x.cells)
        if len(run.inputs) == 2:
            target = run.inputs[1]
            targets = [target[index] for index in places(target.shape)]
        predictions = [run.x[index] for index in places(run.x.shape)]
        return _mean([PAIRS[op](x, t) for x, t in zip(predictions, targets, strict=True)])

    return run_it


def _binary_cross_entropy(x: Scalar, t: Scalar) -> Scalar:
    """Of numbers that need not be probabilities: logarithms of their sizes."""
    logs = x.apply(lambda v: math.log(abs(v))).larger(-100.0)
    others = (1.0 - x).apply(lambda v: math.log(abs(v) + 1)).larger(-100.0)
    return (t - 1.0) * others - t * logs


def _huber(x: Scalar, t: Scalar) -> Scalar:
    gap = x - t
    size = abs(gap)
    return size.above(1.5, (size - 0.75) * 1.5, gap * gap * 0.5)


def _smooth_l1(x: Scalar, t: Scalar) -> Scalar:
    gap = x - t
    size = abs(gap)
    return size.above(2.0, size - 1.0, gap * gap * 0.25)


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "accuracy": accuracy,
    "log_loss": log_loss,
    "infogain_loss": infogain_loss,
    "contrastive_loss": contrastive_loss,
    "softmax_loss": softmax_loss,
    "nll_loss": nll_loss,
    **{op: paired(op) for op in PAIRS},
    "binary_cross_entropy": pointwise(_binary_cross_entropy),
    "huber": pointwise(_huber),
    "smooth_l1": pointwise(_smooth_l1),
}

CASES: list[Case] = [
    *(Case(op, attributes, shapes)
      for op in ("softmax_loss", "nll_loss")
      for attributes, shapes in [
          (None, ((4, 5), (4,))),
          (at.Softmax(1), ((2, 3, 2, 2), (2, 2, 2))),
          (at.Softmax(1), ((2, 3, 2, 2), (2, 1, 2, 2))),
          (at.Softmax(-1), ((2, 3, 4), (2, 3))),
          (at.Softmax(1), ((3, 4),)),
      ]),
    *(Case(op, None, shapes)
      for op in ("mse_loss", "l1_loss", "hinge_loss", "sigmoid_cross_entropy")
      for shapes in [((3, 4), (3, 4)), ((2, 3, 1, 1), (2, 3)), ((5,),)]),
    *(Case(op, a, shapes, note)
      for op in ("accuracy", "log_loss", "infogain_loss")
      for a, shapes, note in [
          (None, ((4, 3), (4,)), "rows"), (None, ((4, 3),), "alone"),
          (at.Softmax(1), ((2, 3, 2, 2), (2, 2, 2)), "maps"),
      ]),
    Case("smooth_l1_loss", None, ((3, 4), (3, 4))),
    Case("smooth_l1_loss", None, ((3, 4),), "alone"),
    Case("contrastive_loss", None, ((4, 3), (4, 3))),
    Case("contrastive_loss", None, ((2, 3, 2, 2),) * 2, "maps"),
    Case("binary_cross_entropy", None, ((2, 3), (2, 3))),
    Case("huber", None, ((2, 3), (2, 3))),
    Case("smooth_l1", None, ((2, 3), (2, 3))),
]  # fmt: skip
