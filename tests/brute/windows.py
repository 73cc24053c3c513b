"""Convolution, transposed convolution and pooling, from their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import product

from layerscope.graph.attributes import AdaptivePool, Conv, GlobalPool, Pool, TransposedConv, Window
from layerscope.graph.types import Shape
from tests.brute.arrays import Array, Index, Run, fill, greatest, places, total
from tests.brute.scalar import BORDER, Scalar


def same_pads(size: int, extent: int, step: int, upper: bool) -> tuple[int, int]:
    """SAME: as much padding as ceil(size / step) placements need, the odd one behind if upper."""
    begin = end = 0
    while -(-size // step) > len(fitting(size + begin + end, extent, step)):
        behind = (begin + end) % 2 == 0
        if behind == upper:
            end += 1
        else:
            begin += 1
    return begin, end


def fitting(size: int, extent: int, step: int) -> list[int]:
    """Starts of all placements that lie wholly inside."""
    return [start for start in range(0, size, step) if start + extent <= size]


def placements(sizes: Shape, window: Window) -> tuple[list[int], ...]:
    """Where the window starts along each axis, counted in the unpadded input, one by one."""
    pads = pads_of(sizes, window)
    padded = any(begin or end for begin, end in pads)
    starts = []
    for size, (begin, end), k, d, step in zip(
        sizes, pads, window.kernel, window.dilation, window.stride, strict=True
    ):
        extent = (k - 1) * d + 1
        room = size + begin + end
        found = fitting(room, extent, step)
        if window.rounding != "floor":  # go on until a placement reaches the end of the padding
            found = [0]
            while found[-1] + extent < room:
                found.append(found[-1] + step)
            clips = window.rounding == "torch" or (window.rounding == "caffe" and padded)
            if clips and found[-1] >= begin + size:
                found.pop()
        starts.append([start - begin for start in found])
    return tuple(starts)


def pads_of(sizes: Shape, window: Window) -> tuple[tuple[int, int], ...]:
    if not isinstance(window.pads, str):
        return window.pads
    upper = window.pads == "same_upper"
    return tuple(
        same_pads(size, (k - 1) * d + 1, step, upper)
        for size, k, d, step in zip(
            sizes, window.kernel, window.dilation, window.stride, strict=True
        )
    )


def taps(window: Window, place: Index) -> Iterator[tuple[Index, Index]]:
    """Each tap of the kernel, and where it falls for a placement."""
    for tap in places(window.kernel):
        yield tap, tuple(p + t * d for p, t, d in zip(place, tap, window.dilation, strict=True))


def conv(run: Run) -> list[Array]:
    a: Conv = run.attributes
    x, weight = run.x, run.params["weight"]
    starts = placements(x.shape[2:], a.window)
    depth = x.shape[1] // a.groups

    def cell(index: Index) -> Scalar:
        n, filt, *at = index
        first = filt // (a.out_channels // a.groups) * depth
        place = tuple(starts[axis][i] for axis, i in enumerate(at))
        result = run.number(0.0)
        for channel in range(depth):
            for tap, where in taps(a.window, place):
                taken = x.get((n, first + channel, *where), run.border())
                result = result.mac(taken, weight[(filt, channel, *tap)])
        return result + run.params["bias"][(filt,)] if a.bias else result

    return [fill((x.shape[0], a.out_channels, *map(len, starts)), cell)]


def transposed_frame(sizes: Shape, a: TransposedConv) -> tuple[Shape, Index]:
    """Output sizes, and where on the output the first tap of input 0 falls (not above 0)."""
    w = a.window
    extra = a.output_padding or (0,) * w.rank
    shape, origin = [], []
    for n, size in enumerate(sizes):
        full = 0  # as long as the furthest tap of the last input reaches, and the output padding
        for tap in range(w.kernel[n]):
            full = max(full, (size - 1) * w.stride[n] + tap * w.dilation[n] + 1)
        full += extra[n]
        if isinstance(w.pads, str):  # SAME: cut to input · stride, the odd one behind if upper
            cut = max(full - size * w.stride[n], 0)
            begin = cut // 2 if w.pads == "same_upper" else cut - cut // 2
            shape.append(size * w.stride[n])
        else:
            begin, end = w.pads[n]
            shape.append(full - begin - end)
        origin.append(-begin)
    return tuple(shape), tuple(origin)


def conv_transpose(run: Run) -> list[Array]:
    a: TransposedConv = run.attributes
    w, x, weight = a.window, run.x, run.params["weight"]
    shape, origin = transposed_frame(x.shape[2:], a)
    depth, filters = x.shape[1] // a.groups, a.out_channels // a.groups
    y = fill((x.shape[0], a.out_channels, *shape), lambda index: run.number(0.0))
    for n, channel, *at in places(x.shape):
        group = channel // depth
        place = tuple(o + i * s for o, i, s in zip(origin, at, w.stride, strict=True))
        for filt in range(filters):
            for tap, where in taps(w, place):
                index = (n, group * filters + filt, *where)
                taken = y.get(index, run.number(0.0))  # what falls into the padding is thrown away
                made = taken.mac(x[(n, channel, *at)], weight[(channel, filt, *tap)])
                if index in y.cells:
                    y.cells[index] = made
    _mark_outside(run, y, x.shape[2:], origin)
    if a.bias:
        y = fill(y.shape, lambda index: y[index] + run.params["bias"][(index[1],)])
    return [y]


def _mark_outside(run: Run, y: Array, sizes: Shape, origin: Index) -> None:
    """Outputs that inputs before the first or after the last would have reached touch a border."""
    w = run.attributes.window
    for axis, size in enumerate(sizes):
        far = w.kernel[axis] * w.dilation[axis] + w.stride[axis]
        touched = {
            origin[axis] + j * w.stride[axis] + tap * w.dilation[axis]
            for j in (*range(-far, 0), *range(size, size + far))
            for tap in range(w.kernel[axis])
        }
        for index, number in y.cells.items():
            if index[axis + 2] in touched:
                y.cells[index] = Scalar(number.value, run.tally, number.seen | BORDER)


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


def roi_pool(run: Run) -> list[Array]:
    """Regions are (image, x1, y1, x2, y2), corners included."""
    x, regions = run.inputs
    height, width = run.attributes.output
    scale = run.attributes.scale

    def cell(index: Index) -> Scalar:
        region, channel, i, j = index
        image, *corners = (round(regions[(region, n)].value) for n in range(5))
        left, top, right, bottom = (round(corner * scale) for corner in corners)
        rows = bin_of(i, height, bottom - top + 1)
        columns = bin_of(j, width, right - left + 1)
        return greatest(
            x[(image, channel, top + row, left + column)] for row in rows for column in columns
        )

    return [fill((regions.shape[0], x.shape[1], height, width), cell)]


BRUTE = {
    "conv": conv,
    "conv_transpose": conv_transpose,
    **{f"{kind}_pool": window_pool(kind) for kind in BINS},
    **{f"global_{kind}_pool": global_pool(kind) for kind in BINS},
    "adaptive_max_pool": adaptive_pool("max"),
    "adaptive_avg_pool": adaptive_pool("avg"),
    "roi_pool": roi_pool,
}
