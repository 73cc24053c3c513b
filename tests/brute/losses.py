"""Softmax and the losses, from their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable

from layerscope.graph.attributes import Softmax
from tests.brute.arrays import Array, Index, Run, accumulate, greatest, places, split_axes, total
from tests.brute.scalar import Scalar


def _axis(run: Run) -> int:
    a: Softmax = run.attributes or Softmax()
    return a.axis % len(run.x.shape)


def _together(run: Run) -> list[int]:
    """The axes that one softmax goes over."""
    tail = run.attributes is not None and run.attributes.tail
    return list(range(_axis(run), len(run.x.shape))) if tail else [_axis(run)]


def _shifted(run: Run, row: list[Index]) -> dict[Index, Scalar]:
    """x − max; the maximum starts at minus infinity, so it takes one comparison an element."""
    top = run.number(-math.inf)
    for index in row:
        top = top.larger(run.x[index])
    return {index: run.x[index] - top for index in row}


def softmax(run: Run) -> list[Array]:
    cells: dict[Index, Scalar] = {}
    for row in split_axes(run.x.shape, _together(run)):
        powers = {index: z.apply(math.exp) for index, z in _shifted(run, row).items()}
        norm = accumulate(run.number(0.0), powers.values())
        cells.update({index: power / norm for index, power in powers.items()})
    return [Array(run.x.shape, cells)]


def log_softmax(run: Run) -> list[Array]:
    """z − log Σ e^z with z = x − max."""
    cells: dict[Index, Scalar] = {}
    for row in split_axes(run.x.shape, _together(run)):
        shifted = _shifted(run, row)
        powers = (z.apply(math.exp) for z in shifted.values())
        norm = accumulate(run.number(0.0), powers).apply(math.log)
        cells.update({index: z - norm for index, z in shifted.items()})
    return [Array(run.x.shape, cells)]


def hardmax(run: Run) -> list[Array]:
    cells: dict[Index, Scalar] = {}
    for row in split_axes(run.x.shape, _together(run)):
        top = greatest(run.x[index] for index in row)
        first = next(index for index in row if run.x[index].value == top.value)
        cells.update({i: Scalar(float(i == first), run.tally, top.seen) for i in row})
    return [Array(run.x.shape, cells)]


def _mean(numbers: list[Scalar]) -> list[Array]:
    return [Array((), {(): total(numbers) / float(len(numbers))})]


def nll_loss(run: Run, logs: Array | None = None) -> list[Array]:
    """The mean of minus the log-probability of each row's label; labels left out are all 0."""
    source = logs or run.x
    labels = iter(run.inputs[1].values()) if len(run.inputs) == 2 else None
    rows = split_axes(run.x.shape, [_axis(run)])
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


BRUTE = {
    "softmax": softmax,
    "log_softmax": log_softmax,
    "hardmax": hardmax,
    "softmax_loss": softmax_loss,
    "nll_loss": nll_loss,
    **{op: paired(op) for op in PAIRS},
}
