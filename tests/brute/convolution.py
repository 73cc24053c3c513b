"""Loops and cases of convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

from layerscope.graph import attributes as at
from layerscope.graph.attributes import Conv, DeformConv, TransposedConv, Window
from layerscope.graph.types import Shape
from tests.brute.arrays import Array, Index, Run, fill, places, total
from tests.brute.case import MAP, Case
from tests.brute.case import window as w
from tests.brute.scalar import BORDER, Scalar


def im2col(run: Run) -> list[Array]:
    window = run.attributes.window
    starts = placements(run.x.shape[2:], window)
    kernel = list(places(window.kernel))

    def cell(index: Index) -> Scalar:
        n, row, *at_ = index
        place = tuple(starts[axis][i] for axis, i in enumerate(at_))
        where = dict(taps(window, place))[kernel[row % len(kernel)]]
        return run.x.get((n, row // len(kernel), *where), run.border())

    shape = (run.x.shape[0], run.x.shape[1] * len(kernel), *map(len, starts))
    return [fill(shape, cell)]


def deform_conv(run: Run) -> list[Array]:
    """Every sample is taken once, of four neighbours, and weighted; then a convolution of them."""
    a: DeformConv = run.attributes
    x, offsets, *masks = run.inputs
    weight = run.params["weight"]
    starts = placements(x.shape[2:], a.window)
    shape = (x.shape[0], a.out_channels, *map(len, starts))
    depth = x.shape[1] // a.groups
    each = x.shape[1] // a.offset_groups
    positions = a.window.positions

    def sample(n: int, channel: int, place: Index, number: int, position: Index) -> Scalar:
        first = channel // each * positions + number
        moved = [offsets[(n, 2 * first + axis, *position)] for axis in (0, 1)]
        row, column = (p + m.value for p, m in zip(place, moved, strict=True))
        terms = []
        for i, j in product((0, 1), (0, 1)):
            top, left = math.floor(row) + i, math.floor(column) + j
            by = (1 - abs(row - top)) * (1 - abs(column - left))
            terms.append(x.get((n, channel, top, left), run.border()) * by)
        made = total(terms)
        made.seen |= moved[0].seen | moved[1].seen
        return made * masks[0][(n, first, *position)] if masks else made

    samples: dict[Index, Scalar] = {}
    for n, channel in places(x.shape[:2]):
        for position in places(shape[2:]):
            start = tuple(starts[axis][i] for axis, i in enumerate(position))
            for number, (_, place) in enumerate(taps(a.window, start)):
                samples[(n, channel, number, *position)] = sample(
                    n, channel, place, number, position
                )

    def cell(index: Index) -> Scalar:
        n, filt, *position = index
        first = filt // (a.out_channels // a.groups) * depth
        result = run.number(0.0)
        for channel in range(depth):
            for number, tap in enumerate(places(a.window.kernel)):
                taken = samples[(n, first + channel, number, *position)]
                result = result.mac(taken, weight[(filt, channel, *tap)])
        return result + run.params["bias"][(filt,)] if a.bias else result

    return [fill(shape, cell)]


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
        n, filt, *position = index
        first = filt // (a.out_channels // a.groups) * depth
        place = tuple(starts[axis][i] for axis, i in enumerate(position))
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
    for n, channel, *position in places(x.shape):
        group = channel // depth
        place = tuple(o + i * s for o, i, s in zip(origin, position, w.stride, strict=True))
        for filt in range(filters):
            for tap, where in taps(w, place):
                index = (n, group * filters + filt, *where)
                taken = y.get(index, run.number(0.0))  # what falls into the padding is thrown away
                made = taken.mac(x[(n, channel, *position)], weight[(channel, filt, *tap)])
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


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "im2col": im2col,
    "deform_conv": deform_conv,
    "conv": conv,
    "conv_transpose": conv_transpose,
}

D = at.DeformConv
CASES: list[Case] = [
    Case("conv", at.Conv(w([3]), 4), ((2, 3, 9),), "1d"),
    Case("conv", at.Conv(w([5], 2, [(3, 1)], 2), 2, bias=False), ((1, 2, 14),), "1d-uneven-pads"),
    Case("conv", at.Conv(w([3, 3], 1, 1), 4), ((1, 3, 5, 6),), "padded"),
    Case("conv", at.Conv(w([3, 2], [2, 3], [(0, 2), (1, 0)]), 3), ((2, 2, 7, 8),), "uneven"),
    Case("conv", at.Conv(w([3, 3], 1, 2, 2), 4, 2, bias=False), ((1, 4, 6, 6),), "groups-dilated"),
    Case("conv", at.Conv(w([3, 3], 2, 1), 6, 6), ((1, 6, 6, 5),), "depthwise"),
    Case("conv", at.Conv(w([3, 3], 1, 1), 8, 4), ((1, 4, 4, 4),), "depthwise-multiplied"),
    Case("conv", at.Conv(w([1, 1], 2), 5), ((2, 3, 5, 5),), "1x1-strided"),
    Case("conv", at.Conv(w([3, 4], 2, "same_upper"), 2), ((1, 2, 6, 7),), "same-upper"),
    Case("conv", at.Conv(w([3, 4], 2, "same_lower"), 2), ((1, 2, 6, 7),), "same-lower"),
    Case("conv", at.Conv(w([2, 3], 3, "same_upper"), 2), ((1, 1, 7, 8),), "same-step-past-kernel"),
    Case("conv", at.Conv(w([2, 3, 2], [1, 2, 1], 1), 2), ((1, 2, 3, 5, 4),), "3d"),
    Case("conv", at.Conv(w([2, 1, 3], 1, [(1, 0), (0, 0), (2, 1)], [1, 1, 2]), 4, 2),
         ((1, 2, 3, 2, 6),), "3d-groups-dilated"),
    Case("conv_transpose", at.TransposedConv(w([3], 2), 3), ((2, 2, 5),), "1d"),
    Case("conv_transpose", at.TransposedConv(w([3, 3], 2, 1), 2, output_padding=(1, 1)),
         ((1, 3, 4, 3),), "output-padding"),
    Case("conv_transpose", at.TransposedConv(w([4, 2], [3, 1], [(1, 2), (0, 1)]), 4, 2, False),
         ((1, 4, 3, 4),), "groups-uneven"),
    Case("conv_transpose", at.TransposedConv(w([3, 2], 2, 1, [2, 3]), 2),
         ((1, 2, 4, 4),), "dilated"),
    Case("conv_transpose", at.TransposedConv(w([2, 2], 3, 0), 1), ((1, 1, 3, 3),), "holes"),
    Case("conv_transpose", at.TransposedConv(w([2, 2], [3, 2], 0, [1, 3]), 2, 2, True, (2, 2)),
         ((1, 2, 3, 3),), "output-padding-below-dilation"),
    Case("conv_transpose", at.TransposedConv(w([5, 4], 2, "same_upper"), 2),
         ((1, 2, 3, 4),), "same-upper"),
    Case("conv_transpose", at.TransposedConv(w([5, 4], 2, "same_lower"), 2),
         ((1, 2, 3, 4),), "same-lower"),
    Case("conv_transpose", at.TransposedConv(w([4, 5], 2, "same_lower"), 1, output_padding=(1, 1)),
         ((1, 1, 3, 3),), "same-lower-output-padding"),
    Case("conv_transpose", at.TransposedConv(w([2, 2, 3], 2, 0), 2), ((1, 2, 2, 2, 3),), "3d"),
    Case("im2col", at.Im2Col(w([3, 2], 2, 1)), (MAP,)),
    Case("im2col", at.Im2Col(w([2, 2], 1, 0, 2)), (MAP,), "dilated"),
    Case("conv", at.Conv(w([3, 3], 1, 1), 4, 2, bias=False), ((1, 4, 5, 6), (4, 2, 3, 3)), "given"),
    Case("conv", at.Conv(w([3], 2), 2), ((2, 3, 7), (2, 3, 3)), "given-bias-stored"),
    Case("conv", at.Conv(w([2, 2]), 2), ((1, 3, 4, 4), (2, 3, 2, 2), (2,)), "given-both"),
    Case("conv_transpose", at.TransposedConv(w([3, 3], 2, 1), 4, 2), ((1, 2, 3, 3), (2, 2, 3, 3)),
         "given"),
    Case("deform_conv", D(w([3, 3], 1, 1), 2), ((1, 2, 4, 5), (1, 18, 4, 5)), "offsets"),
    Case("deform_conv", D(w([2, 2], [2, 1], 0, 1), 4, 2, False, 2),
         ((2, 4, 5, 4), (2, 16, 2, 3), (2, 8, 2, 3)), "weighted-groups"),
]  # fmt: skip
