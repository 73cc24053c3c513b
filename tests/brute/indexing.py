"""Choosing, placing and repeating elements, and changes of number type, from their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable

from layerscope.graph.attributes import (
    Cast,
    Embedding,
    Expand,
    Gather,
    OneHot,
    Quantize,
    Scatter,
    Table,
    TopK,
)
from tests.brute.arrays import Array, Index, Run, fill, split_axes
from tests.brute.domains import RANGES
from tests.brute.scalar import Scalar

SHIFT = 2  # by how much a roll moves every axis but the first: the rule does not ask


def _whole(number: Scalar) -> int:
    return round(number.value)


def gather(run: Run) -> list[Array]:
    a: Gather = run.attributes or Gather()
    x, indices = run.inputs
    axis = a.axis % len(x.shape)
    if a.elements:
        return [
            fill(
                indices.shape,
                lambda i: x[(*i[:axis], _whole(indices[i]), *i[axis + 1 :])],
            )
        ]
    rank = len(indices.shape)

    def cell(index: Index) -> Scalar:
        chosen = _whole(indices[index[axis : axis + rank]])
        return x[(*index[:axis], chosen, *index[axis + rank :])]

    return [fill((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), cell)]


def gather_nd(run: Run) -> list[Array]:
    batch = run.attributes.batch if run.attributes else 0
    x, indices = run.inputs
    lead, deep = len(indices.shape) - 1, batch + indices.shape[-1]

    def cell(index: Index) -> Scalar:
        told = (_whole(indices[(*index[:lead], n)]) for n in range(indices.shape[-1]))
        return x[(*index[:batch], *told, *index[lead:])]

    return [fill((*indices.shape[:-1], *x.shape[deep:]), cell)]


def scatter_nd(run: Run) -> list[Array]:
    a: Scatter = run.attributes or Scatter()
    x, indices, updates = run.inputs
    lead = len(indices.shape) - 1
    cells = dict(x.cells)
    for index, update in updates.cells.items():
        told = (_whole(indices[(*index[:lead], n)]) for n in range(indices.shape[-1]))
        place = (*told, *index[lead:])
        cells[place] = cells[place] + update if a.add else update
    return [Array(x.shape, cells)]


def one_hot(run: Run) -> list[Array]:
    a: OneHot = run.attributes
    axis = a.axis % (len(run.x.shape) + 1)

    def cell(index: Index) -> Scalar:
        number = run.x[(*index[:axis], *index[axis + 1 :])]
        return number.once("comp", lambda v: float(v == index[axis]))

    return [fill((*run.x.shape[:axis], a.depth, *run.x.shape[axis:]), cell)]


def scatter(run: Run) -> list[Array]:
    a: Scatter = run.attributes or Scatter()
    x, indices, updates = run.inputs
    axis = a.axis % len(x.shape)
    cells = dict(x.cells)
    for index, update in updates.cells.items():
        place = (*index[:axis], _whole(indices[index]), *index[axis + 1 :])
        cells[place] = cells[place] + update if a.add else update
    return [Array(x.shape, cells)]


def expand(run: Run) -> list[Array]:
    a: Expand = run.attributes
    x = run.x
    own = len(a.shape) - len(x.shape)
    have = (1,) * own + x.shape
    shape = tuple(
        size if wanted in (0, -1) else wanted for size, wanted in zip(have, a.shape, strict=True)
    )
    return [fill(shape, lambda i: x[tuple(n % m for n, m in zip(i[own:], x.shape, strict=True))])]


def where(run: Run) -> list[Array]:
    """One look at each condition."""
    rank = max(len(x.shape) for x in run.inputs)
    wide = [(1,) * (rank - len(x.shape)) + x.shape for x in run.inputs]
    shape = tuple(max(sizes) for sizes in zip(*wide, strict=True))

    def cell(index: Index) -> Scalar:
        condition, then, otherwise = (
            x[tuple(i % n for i, n in zip(index[rank - len(x.shape) :], x.shape, strict=True))]
            for x in run.inputs
        )
        return condition.above(0.5, then, otherwise)

    return [fill(shape, cell)]


def top_k(run: Run) -> list[Array]:
    """The largest first, of equals the earlier.

    How many comparisons a heap makes is up to the data. Counted is the rule as it is stated: every
    element goes down a tree of the k best, with one comparison on each of its ⌈log2 k⌉ levels, and
    for k = 1 meets the one that is there. The choice itself is made uncounted.
    """
    a: TopK = run.attributes
    x = run.x
    axis = a.axis % len(x.shape)
    levels = next(n for n in range(1, 64) if 2**n >= a.k)
    values: dict[Index, Scalar] = {}
    indices: dict[Index, Scalar] = {}
    for row in split_axes(x.shape, [axis]):
        for index in row:
            for _ in range(levels):
                x[index].larger(x[row[0]])
        seen = 0
        for index in row:
            seen |= x[index].seen
        best = sorted(row, key=lambda index: -x[index].value)[: a.k]
        for n, index in enumerate(best):
            place = (*index[:axis], n, *index[axis + 1 :])
            values[place] = Scalar(x[index].value, run.tally, seen)
            indices[place] = Scalar(index[axis], run.tally, seen)
    shape = (*x.shape[:axis], a.k, *x.shape[axis + 1 :])
    return [Array(shape, values), Array(shape, indices)]


def embedding(run: Run) -> list[Array]:
    a: Embedding = run.attributes
    weight = run.params["weight"]

    def cell(index: Index) -> Scalar:
        row = run.x[index[:-1]]
        taken = weight[(_whole(row), index[-1])]
        return Scalar(taken.value, run.tally, row.seen)

    return [fill((*run.x.shape, a.features), cell)]


def table(run: Run) -> list[Array]:
    a: Table = run.attributes
    weight = run.params["weight"]
    if not a.batched:
        return [weight]
    return [fill((run.x.shape[0], *a.shape[1:]), lambda index: weight[(0, *index[1:])])]


def positions(run: Run) -> list[Array]:
    return [fill((1, run.x.shape[1]), lambda index: run.number(index[1]))]


def roll(run: Run) -> list[Array]:
    x = run.x

    def cell(index: Index) -> Scalar:
        moved = ((i - SHIFT) % size for i, size in zip(index[1:], x.shape[1:], strict=True))
        return x[(index[0], *moved)]

    return [fill(x.shape, cell)]


def _channel(run: Run, index: Index) -> Index:
    per_channel = (run.attributes or Quantize()).per_channel and len(run.x.shape) > 1
    return (index[1],) if per_channel else (0,)


def quantize(run: Run) -> list[Array]:
    """round(x / scale) + zero point, clipped at both ends; the rounding is a change of type."""
    a: Quantize = run.attributes
    low, high = RANGES[a.dtype]

    def cell(index: Index) -> Scalar:
        at = _channel(run, index)
        steps = run.x[index] / run.params["scale"][at]
        whole = Scalar(round(steps.value), run.tally, steps.seen)
        return (whole + run.params["zero_point"][at]).larger(float(low)).smaller(float(high))

    return [fill(run.x.shape, cell)]


def dequantize(run: Run) -> list[Array]:
    def cell(index: Index) -> Scalar:
        at = _channel(run, index)
        return (run.x[index] - run.params["zero_point"][at]) * run.params["scale"][at]

    return [fill(run.x.shape, cell)]


CASTS: dict[str, Callable[[float], float]] = {
    "int64": math.trunc,
    "int8": math.trunc,
    "bool": bool,
    "fp16": float,
    "fp64": float,
}


def cast(run: Run) -> list[Array]:
    a: Cast = run.attributes
    change = CASTS[a.dtype]
    return [fill(run.x.shape, lambda i: Scalar(change(run.x[i].value), run.tally, run.x[i].seen))]


BRUTE = {
    "gather": gather,
    "scatter": scatter,
    "gather_nd": gather_nd,
    "scatter_nd": scatter_nd,
    "one_hot": one_hot,
    "expand": expand,
    "where": where,
    "top_k": top_k,
    "embedding": embedding,
    "table": table,
    "positions": positions,
    "roll": roll,
    "quantize": quantize,
    "dequantize": dequantize,
    "cast": cast,
}
