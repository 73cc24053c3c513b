"""Loops and cases of reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from layerscope.graph import attributes as at
from layerscope.graph.attributes import Reduce
from tests.brute.arrays import Array, Index, Run, greatest, split_axes, total
from tests.brute.case import Case
from tests.brute.scalar import Scalar

Join = Callable[[Run, list[Scalar]], Scalar]


def _smallest(run: Run, numbers: list[Scalar]) -> Scalar:
    result = numbers[0]
    for number in numbers[1:]:
        result = result.smaller(number)
    return result


def _product(run: Run, numbers: list[Scalar]) -> Scalar:
    result = numbers[0]
    for number in numbers[1:]:
        result = result * number
    return result


def _where(sign: float) -> Join:
    """The place of the first that none exceeds: one comparison less than numbers."""

    def place(run: Run, numbers: list[Scalar]) -> Scalar:
        best, found = numbers[0], run.number(0.0)
        found.seen = best.seen
        for n, number in enumerate(numbers[1:], 1):
            better = sign * number.value > sign * best.value
            if sign > 0:
                found = number.above(best, float(n), found)
            else:
                found = best.above(number, float(n), found)
            found.seen |= number.seen
            best = number if better else best
        return found

    return place


def _spread(run: Run, numbers: list[Scalar]) -> Scalar:
    """The mean square of what is left without the mean."""
    middle = total(numbers) / float(len(numbers))
    rest = [number - middle for number in numbers]
    return total(r * r for r in rest) / float(len(rest))


def _answer(whole: Callable[[Iterable[float]], bool]) -> Join:
    def join(run: Run, numbers: list[Scalar]) -> Scalar:
        result = numbers[0]
        for number in numbers[1:]:
            result = result.once("comp", lambda a, b: whole((a, b)), number)
        return result

    return join


JOINS: dict[str, Join] = {
    "reduce_sum": lambda run, numbers: total(numbers),
    "reduce_mean": lambda run, numbers: total(numbers) / float(len(numbers)),
    "reduce_max": lambda run, numbers: greatest(numbers),
    "reduce_min": _smallest,
    "reduce_prod": _product,
    "reduce_l1": lambda run, numbers: total(abs(number) for number in numbers),
    "reduce_sum_square": lambda run, numbers: total(n * n for n in numbers),
    "reduce_l2": lambda run, numbers: total(n * n for n in numbers).apply(math.sqrt),
    "reduce_log_sum": lambda run, numbers: total(numbers).apply(math.log),
    "reduce_log_sum_exp": lambda run, numbers: total(
        number.apply(math.exp) for number in numbers
    ).apply(math.log),
    "reduce_var": _spread,
    "reduce_std": lambda run, numbers: _spread(run, numbers).apply(math.sqrt),
    "reduce_any": _answer(any),
    "reduce_all": _answer(all),
    "arg_max": _where(1.0),
    "arg_min": _where(-1.0),
}


def reduction(op: str) -> Callable[[Run], list[Array]]:
    def run_it(run: Run) -> list[Array]:
        a: Reduce = run.attributes or Reduce()
        rank = len(run.x.shape)
        axes = {axis % rank for axis in a.axes} or set(range(rank))
        if a.tail:
            axes = set(range(min(axes), rank))

        def left(index: Index, kept: int) -> Index:
            return tuple(
                kept if axis in axes else size
                for axis, size in enumerate(index)
                if a.keep or axis not in axes
            )

        cells = {}
        for group in split_axes(run.x.shape, axes):
            cells[left(group[0], 0)] = JOINS[op](run, [run.x[index] for index in group])
        return [Array(left(run.x.shape, 1), cells)]

    return run_it


BRUTE: dict[str, Callable[[Run], list[Array]]] = {op: reduction(op) for op in JOINS}

CASES: list[Case] = [
    *(Case(f"reduce_{kind}", a, (shape,), note)
      for kind in ("sum", "mean", "max", "min", "prod", "l1", "l2")
      for a, shape, note in [
          (None, (2, 3, 2), "all"),
          (at.Reduce((1,)), (2, 3, 4), "one"),
          (at.Reduce((-1, 1), keep=True), (2, 3, 2, 4), "several-kept"),
          (at.Reduce((2, 3)), (2, 3, 2, 4), "places"),
          (at.Reduce((), keep=True), (2, 3), "all-kept"),
          (at.Reduce((1,)), (3, 1), "of-one"),
      ]),
    *(Case(f"arg_{kind}", a, (shape,), note)
      for kind in ("max", "min")
      for a, shape, note in [
          (None, (2, 3, 2), "all"),
          (at.Reduce((1,)), (2, 3, 4), "one"),
          (at.Reduce((-1,), keep=True), (2, 3, 5), "kept"),
          (at.Reduce((), keep=True), (2, 3), "all-kept"),
      ]),
    *(Case(op, at.Reduce((1,), tail=True), ((2, 3, 4),), "tail")
      for op in ("reduce_sum", "reduce_mean", "reduce_l1", "reduce_sum_square")),
    Case("reduce_sum_square", None, ((2, 3, 2),), "all"),
    Case("reduce_sum_square", at.Reduce((1,), keep=True), ((2, 3, 2),), "kept"),
    *(Case(f"reduce_{kind}", a, (shape,), note)
      for kind in ("log_sum", "log_sum_exp", "var", "std", "any", "all")
      for a, shape, note in [
          (None, (2, 3, 2), "all"),
          (at.Reduce((1,)), (2, 3, 4), "one"),
          (at.Reduce((-1, 1), keep=True), (2, 3, 2, 4), "several-kept"),
      ]),
]  # fmt: skip
