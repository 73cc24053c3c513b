"""Loops and cases of top-k, cumulative sums, distances, searches and embedding bags."""

from __future__ import annotations

import math
from collections.abc import Callable

from layerscope.graph import attributes as at
from layerscope.graph.attributes import CumSum, Distance, EmbeddingBag, TopK
from tests.brute.arrays import Array, Index, Run, fill, places, split_axes, total
from tests.brute.case import Case, declared
from tests.brute.scalar import Scalar


def cdist(run: Run) -> list[Array]:
    p = (run.attributes or Distance()).p
    left, right = run.x, run.inputs[-1]
    n = left.shape[-1]

    def distance(a: Index, b: Index) -> Scalar:
        gaps = [left[(*a, k)] - right[(*b, k)] for k in range(n)]
        if p == 2:
            return total([gap * gap for gap in gaps]).apply(math.sqrt)
        if p == 0:
            return total([gap.once("comp", lambda v: float(v != 0)) for gap in gaps])
        sizes = [abs(gap) for gap in gaps]
        if p == 1:
            return total(sizes)
        if p == math.inf:
            most = sizes[0]
            for size in sizes[1:]:
                most = most.larger(size)
            return most
        return total([size**p for size in sizes]) ** (1 / p)

    if len(run.inputs) == 1:
        count = left.shape[0]
        pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
        return [fill((len(pairs),), lambda n: distance((pairs[n[0]][0],), (pairs[n[0]][1],)))]
    shape = (*left.shape[:-1], right.shape[-2])
    return [fill(shape, lambda i: distance(i[:-1], (*i[:-2], i[-1])))]


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


def searchsorted(run: Run) -> list[Array]:
    """The longest way of a binary search, whatever the numbers."""
    x, values = run.inputs
    levels = math.ceil(math.log2(x.shape[-1] + 1))

    def cell(index: Index) -> Scalar:
        found = values[index]
        for _ in range(levels):
            found = found.larger(x[(0,)])
        for spot in range(x.shape[-1]):
            found.seen |= x[(spot,)].seen
        return found

    return [fill(values.shape, cell)]


def bincount(run: Run) -> list[Array]:
    bins = [run.number(0.0) for _ in range(run.attributes.shapes[0][0])]
    for n, index in enumerate(places(run.x.shape)):
        bins[n % len(bins)] = bins[n % len(bins)] + run.x[index]
    return [fill((len(bins),), lambda i: bins[i[0]])]


def running(
    join: Callable[[Scalar, Scalar], Scalar], outputs: int = 1
) -> Callable[[Run], list[Array]]:
    """Every element joined to all before it along one axis."""

    def run_it(run: Run) -> list[Array]:
        axis = (run.attributes or CumSum()).axis % len(run.x.shape)
        cells: dict[Index, Scalar] = {}
        for row in split_axes(run.x.shape, [axis]):
            for before, index in zip((None, *row), row, strict=False):
                number = run.x[index]
                cells[index] = number if before is None else join(cells[before], number)
        return [Array(run.x.shape, cells)] * outputs

    return run_it


def masked_scatter(run: Run) -> list[Array]:
    x, flags, source = run.inputs
    values = iter([source[index] for index in places(source.shape)])
    return [fill(x.shape, lambda i: next(values) if flags[i].once("comp", bool).value else x[i])]


def embedding_bag(run: Run) -> list[Array]:
    """Bags of equal size, in order."""
    a: EmbeddingBag = run.attributes
    size = run.x.shape[0] // a.bags
    table = run.params["weight"]

    def row(n: int, feature: int) -> Scalar:
        value = table[(round(run.x[(n,)].value) % a.rows, feature)]
        return value * run.inputs[2][(n,)] if len(run.inputs) > 2 else value

    def cell(index: Index) -> Scalar:
        bag, feature = index
        values = [row(bag * size + n, feature) for n in range(size)]
        if a.mode == "max":
            most = values[0]
            for value in values[1:]:
                most = most.larger(value)
            return most
        made = total(values)
        return made / float(size) if a.mode == "mean" else made

    return [fill((a.bags, a.features), cell)]


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "cdist": cdist,
    "top_k": top_k,
    "searchsorted": searchsorted,
    "bincount": bincount,
    "cum_sum": running(lambda a, b: a + b),
    "cum_prod": running(lambda a, b: a * b),
    "cum_max": running(lambda a, b: a.larger(b), outputs=2),
    "cum_min": running(lambda a, b: a.smaller(b), outputs=2),
    "masked_scatter": masked_scatter,
    "embedding_bag": embedding_bag,
}

BAG = at.EmbeddingBag
CASES: list[Case] = [
    *[Case("cdist", at.Distance(p), ((2, 3, 4), (2, 5, 4)), f"{p}")
      for p in (0.0, 1.0, 2.0, 3.0, float("inf"))],
    Case("cdist", None, ((4, 3),), "each-with-each"),
    *(Case("top_k", at.TopK(k, axis), (shape,), f"{k}")
      for k, axis, shape in [
          (1, -1, (2, 5)), (2, 1, (2, 4, 3)), (3, -1, (2, 2, 7)), (5, 0, (5, 2)), (8, 1, (1, 9)),
      ]),
    Case("searchsorted", declared((2, 3)), ((5,), (2, 3))),
    Case("searchsorted", declared((3,)), ((8,), (3,)), "power-of-2"),
    Case("bincount", declared((4,)), ((6,),)),
    *(Case(op, at.CumSum(axis), (shape,), f"{axis}")
      for op in ("cum_sum", "cum_prod")
      for axis, shape in [(1, (2, 3, 4)), (-1, (2, 5)), (0, (4,))]),
    Case("cum_max", at.CumSum(1), ((2, 4, 3),)),
    Case("cum_min", None, ((3, 4),)),
    Case("masked_scatter", None, ((3, 4), (3, 4), (12,))),
    Case("embedding_bag", BAG(5, 3, 2), ((6,), (2,)), "sum"),
    Case("embedding_bag", BAG(5, 3, 2, "mean"), ((6,), (2,)), "mean"),
    Case("embedding_bag", BAG(5, 3, 2, "max"), ((6,), (2,)), "max"),
    Case("embedding_bag", BAG(5, 3, 2), ((6,), (2,), (6,)), "weighted"),
]  # fmt: skip
