"""Reductions, cumulative sums and matrix products of small arrays."""

from __future__ import annotations

import math
from collections.abc import Callable

from layerscope.errors import ShapeError
from layerscope.formats.onnx.arrays import (
    Attrs,
    Evaluate,
    Given,
    NotFoldable,
    Numbers,
    SmallArray,
    axes_of,
    broadcast_to,
    cast,
    fits,
    positions,
    strides,
)
from layerscope.formats.onnx.dtypes import Number
from layerscope.formats.onnx.folding.elementwise import divide, present
from layerscope.graph.types import elements
from layerscope.ops.spec import axis_of, broadcast

MOST_PRODUCTS = 1 << 16  # of a matrix product


def _reduced(function: Callable[[Numbers], Number]) -> Evaluate:
    def evaluate(attrs: Attrs, given: Given) -> list[SmallArray]:
        x = present(given)[0]
        axes = axes_of(attrs, given)
        if not axes:
            if attrs.get("noop_with_empty_axes"):
                return [x]
            axes = tuple(range(len(x.shape)))
        at = {axis_of(axis, len(x.shape)) for axis in axes}
        groups: dict[tuple[int, ...], Numbers] = {}
        for position, value in zip(positions(x.shape), x.values, strict=True):
            key = tuple(0 if n in at else p for n, p in enumerate(position))
            groups.setdefault(key, []).append(value)
        shape = tuple(1 if n in at else size for n, size in enumerate(x.shape))
        try:  # an axis without elements leaves groups of none
            values = [
                cast(function(groups.get(position, [])), x.dtype) for position in positions(shape)
            ]  # fmt: skip
        except (ArithmeticError, ValueError):
            raise NotFoldable from None
        if not attrs.get("keepdims", 1):
            shape = tuple(size for n, size in enumerate(shape) if n not in at)
        return [SmallArray(shape, values, x.dtype)]

    return evaluate


def _log_sum_exp(many: Numbers) -> float:
    top: float = max(many)
    return top + math.log(sum([math.exp(value - top) for value in many]))


def _best(choose: Callable[[Number, Number], bool]) -> Evaluate:
    """The index along an axis of the first or last best element."""

    def evaluate(attrs: Attrs, given: Given) -> list[SmallArray]:
        x = present(given)[0]
        axis = axis_of(attrs.get("axis", 0), len(x.shape))
        size, step = x.shape[axis], strides(x.shape)[axis]
        if not size:
            raise ShapeError("the best of no elements")
        last = attrs.get("select_last_index", 0)
        values: Numbers = []
        for outer in range(elements(x.shape[:axis])):
            for inner in range(step):
                start, best = outer * size * step + inner, 0
                for n in range(1, size):
                    new, old = x.values[start + n * step], x.values[start + best * step]
                    if choose(new, old) or (last and new == old):
                        best = n
                values.append(best)
        kept = (1,) if attrs.get("keepdims", 1) else ()
        return [SmallArray((*x.shape[:axis], *kept, *x.shape[axis + 1 :]), values, "int64")]

    return evaluate


def _cumulated(function: Callable[[Number, Number], Number], neutral: int) -> Evaluate:
    def evaluate(attrs: Attrs, given: Given) -> list[SmallArray]:
        x, axes = present(given)
        axis = axis_of(int(axes.item), len(x.shape))
        size, step = x.shape[axis], strides(x.shape)[axis]
        values = list(x.values)
        order = range(size - 1, -1, -1) if attrs.get("reverse") else range(size)
        for outer in range(elements(x.shape[:axis])):
            for inner in range(step):
                start = outer * size * step + inner
                total = cast(neutral, x.dtype)
                for n in order:
                    at = start + n * step
                    before, total = total, cast(function(total, x.values[at]), x.dtype)
                    values[at] = before if attrs.get("exclusive") else total
        return [SmallArray(x.shape, values, x.dtype)]

    return evaluate


def _matmul(attrs: Attrs, given: Given) -> list[SmallArray]:
    a, b = present(given)
    if not a.shape or not b.shape:
        raise ShapeError("a matrix product of a scalar")
    left = a.shape if len(a.shape) > 1 else (1, *a.shape)
    right = b.shape if len(b.shape) > 1 else (*b.shape, 1)
    (rows, inner), (again, columns) = left[-2:], right[-2:]
    if inner != again:
        raise ShapeError(f"a matrix product of {a.shape} and {b.shape}")
    batch = broadcast((left[:-2], right[:-2]))
    shape = fits((*batch, rows, columns))
    if elements(shape) * inner > MOST_PRODUCTS:
        raise NotFoldable
    lefts = broadcast_to(SmallArray(left, a.values, a.dtype), fits((*batch, rows, inner)))
    rights = broadcast_to(SmallArray(right, b.values, b.dtype), fits((*batch, inner, columns)))
    values = []
    for n in range(elements(batch)):
        for row in range(rows):
            first = (n * rows + row) * inner
            for column in range(columns):
                second = n * inner * columns + column
                total = sum(
                    lefts[first + k] * rights[second + k * columns] for k in range(inner)
                )  # fmt: skip
                values.append(cast(total, a.dtype))
    result = (*batch, *shape[-2:-1] * (len(a.shape) > 1), *shape[-1:] * (len(b.shape) > 1))
    return [SmallArray(result, values, a.dtype)]


EVALUATE: dict[str, Evaluate] = {
    "ReduceProd": _reduced(math.prod), "ReduceSum": _reduced(sum), "ReduceMax": _reduced(max),
    "ReduceMin": _reduced(min), "ReduceMean": _reduced(lambda many: divide(sum(many), len(many))),
    "ReduceL1": _reduced(lambda many: sum(map(abs, many))),
    "ReduceL2": _reduced(lambda many: math.sqrt(sum([value * value for value in many]))),
    "ReduceSumSquare": _reduced(lambda many: sum([value * value for value in many])),
    "ReduceLogSum": _reduced(lambda many: math.log(sum(many))),
    "ReduceLogSumExp": _reduced(_log_sum_exp),
    "ArgMax": _best(lambda new, old: new > old), "ArgMin": _best(lambda new, old: new < old),
    "CumSum": _cumulated(lambda a, b: a + b, 0), "CumProd": _cumulated(lambda a, b: a * b, 1),
    "MatMul": _matmul,
}  # fmt: skip
