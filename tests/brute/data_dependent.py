"""Loops and cases of ops whose output size depends on data."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.graph import attributes as at
from layerscope.graph.attributes import Compress, Unique
from tests.brute.arrays import Array, Run, fill, places, split_axes
from tests.brute.case import Case


def non_zero(run: Run) -> list[Array]:
    found = [i for i, x in run.x.cells.items() if x.once("comp", lambda v: v != 0).value]
    return [fill((len(run.x.shape), len(found)), lambda i: run.number(found[i[1]][i[0]]))]


def compress(run: Run) -> list[Array]:
    a: Compress = run.attributes or Compress()
    x, flags = run.inputs
    kept = [i for (i,), flag in flags.cells.items() if flag.once("comp", bool).value]
    if a.axis is None:
        every = [x[index] for index in places(x.shape)]
        return [fill((len(kept),), lambda i: every[kept[i[0]]])]
    axis = a.axis % len(x.shape)
    shape = (*x.shape[:axis], len(kept), *x.shape[axis + 1 :])
    return [fill(shape, lambda i: x[(*i[:axis], kept[i[axis]], *i[axis + 1 :])])]


def unique(run: Run) -> list[Array]:
    """Counted by the rule as it is stated: a sort of so many levels, then neighbours compared."""
    a: Unique = run.attributes or Unique()
    x = run.x
    rank = len(x.shape)
    axis = None if a.axis is None else a.axis % rank
    if axis is None:
        groups = [[index] for index in places(x.shape)]
    else:
        groups = list(split_axes(x.shape, [n for n in range(rank) if n != axis]))
    levels = next(n for n in range(64) if 2**n >= len(groups))
    for group in groups:
        for index in group * levels:
            x[index].larger(x[index])
    for group in groups[1:]:
        for index in group:
            x[index].larger(x[index])
    order = sorted(range(len(groups)), key=lambda n: [x[index].value for index in groups[n]])
    count = len(groups)
    if axis is None:
        first = fill((count,), lambda i: x[groups[order[i[0]]][0]])
    else:
        first = fill(x.shape, lambda i: x[(*i[:axis], order[i[axis]], *i[axis + 1 :])])
    rest = [order, [order.index(n) for n in range(count)], [1] * count]
    made = [fill((count,), lambda i, told=told: run.number(told[i[0]])) for told in rest]  # type: ignore[misc]
    return [first, *made][: a.outputs]


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "non_zero": non_zero,
    "compress": compress,
    "unique": unique,
}

CASES: list[Case] = [
    Case("non_zero", None, ((2, 3),)),
    Case("compress", at.Compress(1), ((2, 3, 2), (3,)), "axis"),
    Case("compress", None, ((2, 3), (6,)), "elements"),
    Case("unique", None, ((2, 3),)),
    Case("unique", at.Unique(0, 4), ((3, 2),), "rows"),
    Case("unique", at.Unique(None, 4), ((5,),), "all-outputs"),
]  # fmt: skip
