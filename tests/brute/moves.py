"""Ops that move elements, and resizing, from their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

from layerscope.graph.attributes import (
    Concat,
    Crop,
    Flatten,
    Pad,
    Permute,
    PixelShuffle,
    Reshape,
    Resize,
    Slice,
    Split,
)
from layerscope.graph.types import Shape
from tests.brute.arrays import Array, Index, Run, fill, places, total
from tests.brute.scalar import BORDER, Scalar


def identity(run: Run) -> list[Array]:
    return [run.x]


def repeat(run: Run) -> list[Array]:
    x, times = run.x, run.attributes.times
    shape = tuple(size * n for size, n in zip(x.shape, times, strict=True))
    return [fill(shape, lambda i: x[tuple(n % m for n, m in zip(i, x.shape, strict=True))])]


def flip(run: Run) -> list[Array]:
    axes = {axis % len(run.x.shape): range(run.x.shape[axis])[::-1] for axis in run.attributes.axes}
    return [_taken(run.x, axes)]


def trilu(run: Run) -> list[Array]:
    """What stands on or above the diagonal."""
    return [fill(run.x.shape, lambda i: run.x[i] if i[-1] >= i[-2] else run.number(0.0))]


def _in_row_major_order(x: Array, shape: Shape) -> list[Array]:
    cells = [x[index] for index in places(x.shape)]
    return [Array(shape, dict(zip(places(shape), cells, strict=True)))]


def reshape(run: Run) -> list[Array]:
    a: Reshape = run.attributes
    old = run.x.shape
    first = a.axis if a.axis >= 0 else len(old) + 1 + a.axis
    last = len(old) if a.axes == -1 else first + a.axes
    shape = [old[first + n] if size == 0 else size for n, size in enumerate(a.shape)]
    shape = [*old[:first], *shape, *old[last:]]
    if -1 in shape:
        rest = math.prod(size for size in shape if size != -1)
        shape[shape.index(-1)] = len(run.x.cells) // rest
    return _in_row_major_order(run.x, tuple(shape))


def flatten(run: Run) -> list[Array]:
    a: Flatten = run.attributes or Flatten()
    shape = run.x.shape
    if a.start == len(shape):
        return _in_row_major_order(run.x, (*shape, 1))
    first, last = a.start % len(shape), a.end % len(shape)
    merged = math.prod(shape[first : last + 1])
    return _in_row_major_order(run.x, (*shape[:first], merged, *shape[last + 1 :]))


def permute(run: Run) -> list[Array]:
    a: Permute = run.attributes
    cells = {tuple(index[n] for n in a.order): cell for index, cell in run.x.cells.items()}
    return [Array(tuple(run.x.shape[n] for n in a.order), cells)]


def concat(run: Run) -> list[Array]:
    a: Concat = run.attributes or Concat()
    axis = a.axis % len(run.x.shape)
    cells: dict[Index, Scalar] = {}
    start = 0
    for x in run.inputs:
        for index, cell in x.cells.items():
            cells[(*index[:axis], index[axis] + start, *index[axis + 1 :])] = cell
        start += x.shape[axis]
    return [Array((*run.x.shape[:axis], start, *run.x.shape[axis + 1 :]), cells)]


def _taken(x: Array, axes: dict[int, range]) -> Array:
    """The elements at these places of each axis, in that order."""
    kept = [axes.get(axis, range(size)) for axis, size in enumerate(x.shape)]
    shape = tuple(map(len, kept))
    return fill(shape, lambda i: x[tuple(places[n] for places, n in zip(kept, i, strict=True))])


def split(run: Run) -> list[Array]:
    a: Split = run.attributes
    axis = a.axis % len(run.x.shape)
    pieces, start = [], 0
    for size in a.sizes:
        pieces.append(_taken(run.x, {axis: range(start, start + size)}))
        start += size
    return pieces


def cut(run: Run) -> list[Array]:
    a: Slice = run.attributes
    axes = {}
    for n, axis in enumerate(a.axes):
        size = run.x.shape[axis]
        step = a.steps[n] if a.steps else 1
        axes[axis % len(run.x.shape)] = range(size)[a.starts[n] : a.ends[n] : step]
    return [_taken(run.x, axes)]


def insert(run: Run) -> list[Array]:
    a: Slice = run.attributes
    x, part = run.inputs
    axis = a.axes[0] % len(x.shape)
    taken = list(range(x.shape[axis])[slice(a.starts[0], a.ends[0], (a.steps or (1,))[0])])

    def cell(i: Index) -> Scalar:
        if i[axis] not in taken:
            return x[i]
        return part[(*i[:axis], taken.index(i[axis]), *i[axis + 1 :])]

    return [fill(x.shape, cell)]


def crop(run: Run) -> list[Array]:
    a: Crop = run.attributes or Crop()
    x, like = run.inputs
    cut_axes = range(a.axis % len(x.shape), len(x.shape))
    axes = {}
    for n, axis in enumerate(cut_axes):
        offset = a.offsets[n] if len(a.offsets) > 1 else a.offsets[0]
        axes[axis] = range(offset, offset + like.shape[axis])
    return [_taken(x, axes)]


def pad(run: Run) -> list[Array]:
    """Outside stands a nought, the mirror image about the edge element, or the edge element."""
    a: Pad = run.attributes
    x = run.x

    def inside(i: int, size: int) -> int:
        if a.mode == "edge":
            return min(max(i, 0), size - 1)
        if a.mode == "reflect":
            return size - 1 - abs(size - 1 - abs(i))
        return i

    def cell(index: Index) -> Scalar:
        place = tuple(i - before for i, (before, _) in zip(index, a.pads, strict=True))
        if place in x.cells:
            return x[place]
        taken = x.get(tuple(map(inside, place, x.shape)), run.border())
        return Scalar(taken.value, run.tally, taken.seen | BORDER)

    shape = tuple(size + b + e for size, (b, e) in zip(x.shape, a.pads, strict=True))
    return [fill(shape, cell)]


def pixel_shuffle(run: Run) -> list[Array]:
    """Channel (c, i, j) of a place becomes place (i, j) of a block of channel c."""
    a: PixelShuffle = run.attributes
    n, channels, *sizes = run.x.shape
    offsets = list(places((a.factor,) * len(sizes)))
    if a.inverse:
        shape = (n, channels * len(offsets), *(size // a.factor for size in sizes))
    else:
        shape = (n, channels // len(offsets), *(size * a.factor for size in sizes))
    coarse, fine = (shape, run.x.shape) if a.inverse else (run.x.shape, shape)
    cells: dict[Index, Scalar] = {}
    for batch, channel, *at in places((n, fine[1], *coarse[2:])):
        for number, offset in enumerate(offsets):
            packed = (batch, channel * len(offsets) + number, *at)
            spread = tuple(i * a.factor + o for i, o in zip(at, offset, strict=True))
            place = (batch, channel, *spread)
            source, target = (place, packed) if a.inverse else (packed, place)
            cells[target] = run.x[source]
    return [Array(shape, cells)]


def cubic(t: Fraction) -> float:
    """Keys' kernel with a = −0.75, as the engines have it."""
    a, t = Fraction(-3, 4), abs(t)
    if t <= 1:
        return float(((a + 2) * t - (a + 3)) * t * t + 1)
    return float(((a * t - 5 * a) * t + 8 * a) * t - 4 * a) if t < 2 else 0.0


Weights = list[tuple[int, float]]


def resize(run: Run) -> list[Array]:
    """A sum over neighbours, weighted per axis; a neighbour outside is the edge element."""
    a: Resize = run.attributes
    x = run.x
    spatial = x.shape[2:]
    scale = a.scale if len(a.scale) == len(spatial) else a.scale * len(spatial)
    if a.size:
        sizes = a.size if len(a.size) == len(spatial) else a.size * len(spatial)
        factors = [Fraction(to, size) for to, size in zip(sizes, spatial, strict=True)]
    else:
        factors = [Fraction(*pair) for pair in scale]
        sizes = tuple(math.floor(s * f) for s, f in zip(spatial, factors, strict=True))

    def near(axis: int, i: int) -> Weights:
        return _neighbours(a, i, spatial[axis], sizes[axis], factors[axis])

    def cell(index: Index) -> Scalar:
        around = list(product(*(near(axis, i) for axis, i in enumerate(index[2:]))))
        terms = []
        for corner in around:
            at = tuple(
                min(max(j, 0), size - 1) for (j, _), size in zip(corner, spatial, strict=True)
            )
            taken = x[(*index[:2], *at)]
            weight = math.prod(w for _, w in corner)
            if weight and any(j != i for (j, _), i in zip(corner, at, strict=True)):
                taken = Scalar(taken.value, run.tally, taken.seen | BORDER)
            terms.append(taken if a.mode == "nearest" else taken * weight)
        return total(terms)

    return [fill((*x.shape[:2], *sizes), cell)]


def _neighbours(a: Resize, i: int, size: int, to: int, factor: Fraction) -> Weights:
    if a.mode == "nearest":
        return [(math.floor(i / factor), 1.0)]
    if a.align_corners:
        place = Fraction(i * (size - 1), to - 1) if to > 1 else Fraction(0)
    else:
        place = (i + Fraction(1, 2)) / factor - Fraction(1, 2)
    low = math.floor(place)
    if a.mode == "bilinear":
        return [(low, float(1 - (place - low))), (low + 1, float(place - low))]
    return [(low + n, cubic(place - low - n)) for n in (-1, 0, 1, 2)]


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "identity": identity,
    "dropout": identity,
    "repeat": repeat,
    "flip": flip,
    "trilu": trilu,
    "reshape": reshape,
    "flatten": flatten,
    "permute": permute,
    "concat": concat,
    "split": split,
    "slice": cut,
    "insert": insert,
    "crop": crop,
    "pad": pad,
    "pixel_shuffle": pixel_shuffle,
    "resize": resize,
}
