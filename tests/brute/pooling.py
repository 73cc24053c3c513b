"""Loops and cases of pooling."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import product

from layerscope.graph import attributes as at
from layerscope.graph.attributes import AdaptivePool, GlobalPool, Pool
from layerscope.graph.types import Shape
from tests.brute.arrays import Array, Index, Run, fill, greatest, places, total
from tests.brute.case import MAP, Case
from tests.brute.case import window as w
from tests.brute.convolution import pads_of, placements, taps
from tests.brute.scalar import Scalar


def _weighted(numbers: list[Scalar]) -> Scalar:
    return total(n * n for n in numbers) / total(numbers)


def mean_of(numbers: list[Scalar]) -> Scalar:
    return total(numbers) / float(len(numbers))


JOINS: dict[str, Callable[[list[Scalar]], Scalar]] = {
    "max": greatest,
    "avg": mean_of,
    "stochastic": _weighted,
}


def _pooled(run: Run, window: at.Window, kind: str) -> Array:
    starts = placements(run.x.shape[2:], window)

    def cell(index: Index) -> Scalar:
        place = tuple(starts[axis][i] for axis, i in enumerate(index[2:]))
        lowest = -math.inf if kind == "max" else 0.0
        under = [where for _, where in taps(window, place)]
        return JOINS[kind]([run.x.get((*index[:2], *where), run.border(lowest)) for where in under])

    return fill((*run.x.shape[:2], *map(len, starts)), cell)


def stochastic_pool(run: Run) -> list[Array]:
    return [_pooled(run, run.attributes.window, "stochastic")]


def global_stochastic_pool(run: Run) -> list[Array]:
    return [_pooled(run, whole(run.x.shape[2:]), "stochastic")]


def whole(sizes: Shape) -> at.Window:
    ones = (1,) * len(sizes)
    return at.Window(sizes, ones, ((0, 0),) * len(sizes), ones)


def level(sizes: Shape, number: int) -> at.Window:
    """2^number bins an axis: as wide as they must be, the pad shared by both ends."""
    bins = 2**number
    kernel = tuple(math.ceil(size / bins) for size in sizes)
    pads = tuple(math.ceil((k * bins - s) / 2) for k, s in zip(kernel, sizes, strict=True))
    return at.Window(kernel, kernel, tuple((p, p) for p in pads), (1, 1), "caffe")


def pyramid(kind: str) -> Callable[[Run], list[Array]]:
    def run_it(run: Run) -> list[Array]:
        levels = run.attributes.levels
        made = [_pooled(run, level(run.x.shape[2:], n), kind) for n in range(levels)]
        if levels == 1:
            return made
        rows = [
            [y[i] for y in made for i in places(y.shape) if i[0] == n]
            for n in range(run.x.shape[0])
        ]
        return [fill((len(rows), len(rows[0])), lambda i: rows[i[0]][i[1]])]

    return run_it


Bin = Callable[[Run, list[Scalar], int], Scalar]  # the numbers of a bin, and what to divide by


def _max(run: Run, numbers: list[Scalar], count: int) -> Scalar:
    return greatest(numbers)


def _average(run: Run, numbers: list[Scalar], count: int) -> Scalar:
    return total(numbers) / float(count)


def _lp(run: Run, numbers: list[Scalar], count: int) -> Scalar:
    """(Σ |x|^p)^(1/p): p 1 needs no powers, p 2 squares by multiplying, an even p no magnitudes."""
    p: int = run.attributes.p
    if p == 1:
        return total(abs(number) for number in numbers)
    if p == 2:
        return total(number * number for number in numbers).apply(math.sqrt)
    if p % 2:
        numbers = [abs(number) for number in numbers]
    return total(number ** float(p) for number in numbers) ** (1.0 / p)


BINS: dict[str, Bin] = {"max": _max, "avg": _average, "lp": _lp}


def window_pool(kind: str) -> Callable[[Run], list[Array]]:
    def pool(run: Run) -> list[Array]:
        a: Pool = run.attributes
        x, w = run.x, a.window
        starts = placements(x.shape[2:], w)
        pads = pads_of(x.shape[2:], w)
        blank = run.border(-math.inf if kind == "max" else 0.0)

        def cell(index: Index) -> Scalar:
            place = tuple(starts[axis][i] for axis, i in enumerate(index[2:]))
            under = [where for _, where in taps(w, place)]
            numbers = [x.get((*index[:2], *where), blank) for where in under]
            counted = sum(_inside(where, x.shape[2:], pads, a.count_include_pad) for where in under)
            # A placement wholly outside, which the plain ceiling allows, has nothing to average.
            return BINS[kind](run, numbers, max(counted, 1))

        y = fill((*x.shape[:2], *map(len, starts)), cell)
        if not a.indices:
            return [y]

        def place_of(index: Index) -> Scalar:
            place = tuple(starts[axis][i] for axis, i in enumerate(index[2:]))
            return _place(run, y[index], index[:2], (where for _, where in taps(w, place)))

        return [y, fill(y.shape, place_of)]

    return pool


def _place(run: Run, top: Scalar, lead: Index, under: Iterable[Index]) -> Scalar:
    """Where in its plane the first of the largest stands, which the comparisons already told."""
    plane = list(places(run.x.shape[2:]))
    inside = (where for where in under if (*lead, *where) in run.x.cells)
    first = next(where for where in inside if run.x[(*lead, *where)].value == top.value)
    return Scalar(plane.index(first), run.tally, top.seen)


def _inside(where: Index, sizes: Shape, pads: tuple[tuple[int, int], ...], with_pads: bool) -> bool:
    """Whether an average counts this position; what hangs over the padding never counts."""
    return all(
        -begin * with_pads <= i < size + end * with_pads
        for i, size, (begin, end) in zip(where, sizes, pads, strict=True)
    )


def global_pool(kind: str) -> Callable[[Run], list[Array]]:
    def pool(run: Run) -> list[Array]:
        run.attributes = run.attributes or GlobalPool()
        x = run.x
        whole = list(places(x.shape[2:]))

        def cell(index: Index) -> Scalar:
            numbers = [x[(*index[:2], *where)] for where in whole]
            return BINS[kind](run, numbers, len(whole))

        return [fill((*x.shape[:2], *(1 for _ in x.shape[2:])), cell)]

    return pool


def bin_of(i: int, bins: int, size: int) -> range:
    """Positions that touch the i-th of `bins` equal parts of an axis: neighbours may share one."""
    return range(math.floor(i * size / bins), math.ceil((i + 1) * size / bins))


def over_bins(run: Run, kind: str, index: Index, ranges: Iterable[range]) -> Scalar:
    numbers = [run.x[(*index, *where)] for where in product(*ranges)]
    return BINS[kind](run, numbers, len(numbers))


def adaptive_pool(kind: str) -> Callable[[Run], list[Array]]:
    def pool(run: Run) -> list[Array]:
        a: AdaptivePool = run.attributes
        x = run.x
        lead = len(x.shape) - len(a.output)
        spatial = x.shape[lead:]
        bins = tuple(b or size for b, size in zip(a.output, spatial, strict=True))

        def cell(index: Index) -> Scalar:
            ranges = map(bin_of, index[lead:], bins, spatial)
            return over_bins(run, kind, index[:lead], ranges)

        y = fill((*x.shape[:lead], *bins), cell)
        if not a.indices:
            return [y]

        def place_of(index: Index) -> Scalar:
            under = product(*map(bin_of, index[lead:], bins, spatial))
            return _place(run, y[index], index[:lead], under)

        return [y, fill(y.shape, place_of)]

    return pool


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "stochastic_pool": stochastic_pool,
    "global_stochastic_pool": global_stochastic_pool,
    **{f"pyramid_{kind}_pool": pyramid(kind) for kind in JOINS},
    **{f"{kind}_pool": window_pool(kind) for kind in BINS},
    **{f"global_{kind}_pool": global_pool(kind) for kind in BINS},
    "adaptive_max_pool": adaptive_pool("max"),
    "adaptive_avg_pool": adaptive_pool("avg"),
}

CASES: list[Case] = [
    *(Case(f"{kind}_pool", at.Pool(window), (shape,), note)
    for kind in ("max", "avg", "lp")
    for window, shape, note in [
        (w([3], 2), (2, 2, 9), "1d"),
        (w([2, 2], 2), (1, 3, 6, 7), "2d"),
        (w([3, 3], 2, 1), (1, 2, 6, 7), "padded"),
        (w([3, 2], [1, 3], [(1, 0), (0, 1)]), (1, 2, 5, 7), "uneven"),
        (w([2, 3, 2], 2, [(0, 1), (1, 1), (0, 0)]), (1, 1, 4, 5, 4), "3d"),
    ]),
    *(Case(f"{kind}_pool", at.Pool(window, count_include_pad=counts), (shape,), f"{note}-{counts}")
    for kind in ("max", "avg")
    for counts in (True, False)
    for window, shape, note in [
        (w([3, 3], 2, 0, 1, "torch"), (1, 2, 6, 7), "ceil"),
        (w([2, 2], 2, 1, 1, "torch"), (1, 2, 3, 5), "ceil-drops-the-last"),
        (w([3, 3], [2, 3], 1, 1, "caffe"), (1, 2, 6, 7), "caffe-padded"),
        (w([3, 3], 2, 0, 1, "caffe"), (1, 2, 6, 8), "caffe-unpadded"),
        (w([3, 3], 2, 0, 1, "ceil"), (1, 2, 6, 8), "plain-ceil"),
        (w([3, 2], 2, "same_upper"), (1, 2, 6, 7), "same-upper"),
        (w([3, 2], 2, "same_lower"), (1, 2, 6, 7), "same-lower"),
    ]),
    Case("max_pool", at.Pool(w([3, 2], 1, 1, 2)), ((1, 2, 6, 6),), "dilated"),
    Case("max_pool", at.Pool(w([2], 3, 1, 2, "torch")), ((1, 2, 11),), "dilated-ceil"),
    Case("lp_pool", at.Pool(w([2, 3], 2), p=1), ((1, 2, 5, 6),), "p1"),
    Case("lp_pool", at.Pool(w([2, 3], 2, 1), p=3), ((1, 2, 5, 6),), "p3"),
    Case("lp_pool", at.Pool(w([2, 3], 2), p=4), ((1, 2, 5, 6),), "p4"),
    Case("global_lp_pool", at.GlobalPool(1), ((2, 3, 4, 2),), "p1"),
    Case("global_lp_pool", at.GlobalPool(3), ((2, 3, 4, 2),), "p3"),
    *(Case(f"global_{kind}_pool", a, (shape,))
      for kind in ("max", "avg", "lp")
      for a, shape in [
          (None, (2, 3, 7)), (at.GlobalPool(), (2, 3, 4, 5)), (None, (1, 2, 3, 2, 2)),
      ]),
    *(Case(f"adaptive_{kind}_pool", at.AdaptivePool(bins), (shape,), note)
      for kind in ("max", "avg")
      for bins, shape, note in [
          ((4,), (2, 3, 10), "overlapping"),
          ((3, 2), (1, 2, 6, 8), "even"),
          ((None, 3), (1, 2, 3, 7), "axis-kept"),
          ((5, 3), (1, 1, 3, 3), "more-bins-than-places"),
          ((2, 1, 3), (1, 2, 3, 4, 5), "3d"),
      ]),
    Case("stochastic_pool", at.Pool(w([2, 2], 1)), (MAP,)),
    Case("stochastic_pool", at.Pool(w([2, 3], 2)), ((1, 2, 4, 5),), "strided"),
    Case("global_stochastic_pool", at.GlobalPool(), (MAP,)),
    *(Case(f"pyramid_{kind}_pool", at.Pyramid(levels), (shape,), f"{levels}-{n}")
      for kind in ("max", "avg", "stochastic")
      for levels in (1, 2, 3)
      for n, shape in enumerate([(2, 3, 8, 4), (1, 2, 7, 6)])
      if kind != "stochastic" or n == 0),
    Case("max_pool", at.Pool(w([2, 2], 2), indices=True), ((2, 3, 4, 6),), "places"),
    Case("max_pool", at.Pool(w([3], 1, 1), indices=True), ((1, 2, 5),), "places-padded"),
    Case("adaptive_max_pool", at.AdaptivePool((2, 3), indices=True), ((2, 2, 4, 6),), "places"),
]  # fmt: skip
