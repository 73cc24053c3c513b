"""Loops and cases of resampling, unpooling and pixel shuffle."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

from layerscope.graph import attributes as at
from layerscope.graph.attributes import GridSample, PixelShuffle, Resize
from tests.brute.arrays import Array, Index, Run, fill, places, total
from tests.brute.case import MAP, Case
from tests.brute.scalar import BORDER, Scalar


def interp(run: Run) -> list[Array]:
    """Corner on corner: place i is i · (in − 1) / (out − 1) of what is left after cropping."""
    a: at.Interp = run.attributes
    begin, end = a.crop
    sizes = [size - begin - end for size in run.x.shape[2:]]
    new = a.size or tuple(len(range(0, size, a.shrink)) for size in sizes)
    if not a.size:
        new = tuple(size + (size - 1) * (a.zoom - 1) for size in new)
    if len(run.inputs) == 2:
        new = run.inputs[1].shape[2:]

    def near(i: int, axis: int) -> list[tuple[int, float]]:
        place = i * (sizes[axis] - 1) / (new[axis] - 1) if new[axis] > 1 else 0.0
        low = min(int(place), sizes[axis] - 1)
        high = min(low + 1, sizes[axis] - 1)
        return [(begin + low, 1 - (place - low)), (begin + high, place - low)]

    def cell(index: Index) -> Scalar:
        if tuple(new) == tuple(sizes):
            return run.x[(*index[:2], *(begin + i for i in index[2:]))]
        rows, columns = near(index[2], 0), near(index[3], 1)
        return total(
            run.x[(*index[:2], r, c)] * (by * also) for r, by in rows for c, also in columns
        )

    return [fill((*run.x.shape[:2], *new), cell)]


def unpool(run: Run) -> list[Array]:
    a: at.Unpool = run.attributes
    x, mask = run.inputs
    sizes = a.size or tuple(
        size * by - less for size, by, less in zip(x.shape[2:], a.scale, a.less, strict=True)
    )
    y = fill((*x.shape[:2], *sizes), lambda index: run.border())
    for index in places(x.shape):
        place = round(mask[index].value)
        y.cells[(*index[:2], *divmod(place, sizes[1]))] = x[index]
    return [y]


def affine_grid(run: Run) -> list[Array]:
    """Every place of a picture from −1 to 1, x first, and a one behind it, by the matrix."""
    a = run.attributes
    sizes = a.size[2:]

    def along(i: int, size: int) -> float:
        if a.align_corners:
            return 2 * i / (size - 1) - 1 if size > 1 else 0.0
        return (2 * i + 1) / size - 1

    def cell(index: Index) -> Scalar:
        n, *position, row = index
        place = [along(i, size) for i, size in zip(position, sizes, strict=True)][::-1]
        result = run.number(0.0)
        for k, value in enumerate((*place, 1.0)):
            result = result.mac(run.x[(n, row, k)], run.number(value))
        return result

    return [fill((a.size[0], *sizes, len(sizes)), cell)]


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
    for batch, channel, *position in places((n, fine[1], *coarse[2:])):
        for number, offset in enumerate(offsets):
            packed = (batch, channel * len(offsets) + number, *position)
            spread = tuple(i * a.factor + o for i, o in zip(position, offset, strict=True))
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
            position = tuple(
                min(max(j, 0), size - 1) for (j, _), size in zip(corner, spatial, strict=True)
            )
            taken = x[(*index[:2], *position)]
            weight = math.prod(w for _, w in corner)
            if weight and any(j != i for (j, _), i in zip(corner, position, strict=True)):
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


def _around(place: float, mode: str) -> list[tuple[int, float]]:
    """Neighbours along one axis, and their weights."""
    low = math.floor(place)
    if mode == "nearest":
        return [(round(place), 1.0)]
    if mode == "bilinear":
        return [(low, 1 - (place - low)), (low + 1, place - low)]
    return [(low + n, cubic(Fraction(place) - low - n)) for n in (-1, 0, 1, 2)]


def grid_sample(run: Run) -> list[Array]:
    """The grid tells x and y from −1 to 1, edge to edge; outside the map there are noughts."""
    a: GridSample = run.attributes or GridSample()
    x, grid = run.inputs
    height, width = x.shape[2:]

    def cell(index: Index) -> Scalar:
        n, channel, i, j = index
        told = grid[(n, i, j, 0)], grid[(n, i, j, 1)]
        across = ((told[0].value + 1) * width - 1) / 2
        down = ((told[1].value + 1) * height - 1) / 2
        terms = []
        for (row, by), (column, also_by) in product(_around(down, a.mode), _around(across, a.mode)):
            taken = x.get((n, channel, row, column), run.border())
            terms.append(taken if a.mode == "nearest" else taken * (by * also_by))
        made = total(terms)
        return Scalar(made.value, run.tally, made.seen | told[0].seen | told[1].seen)

    return [fill((*x.shape[:2], *grid.shape[1:3]), cell)]


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "interp": interp,
    "unpool": unpool,
    "affine_grid": affine_grid,
    "pixel_shuffle": pixel_shuffle,
    "resize": resize,
    "grid_sample": grid_sample,
}

CASES: list[Case] = [
    *(Case("resize", at.Resize(mode, size, scale, align), (shape,), f"{mode}{'-corners' * align}")
      for mode in ("nearest", "bilinear")
      for align in (False, True)
      for size, scale, shape in [
          ((), ((2, 1),), (1, 2, 3, 4)),
          ((5, 3), (), (1, 2, 3, 7)),
          ((), ((3, 2), (1, 2)), (1, 1, 5, 6)),
          ((), ((7, 4),), (1, 1, 5)),
          ((1,), (), (1, 1, 4)),
          ((), ((2, 1),), (1, 1, 2, 3, 2)),
      ]
      # onnxruntime has corner-aligned nearest by rounding; the frameworks know only the floor.
      if not (mode == "nearest" and align)),
    *(Case("resize", at.Resize("bicubic", size, scale, align), (shape,), f"bicubic-{align}")
      for align in (False, True)
      for size, scale, shape in [
          ((), ((2, 1),), (1, 2, 4, 5)),
          ((7, 3), (), (1, 1, 4, 6)),
      ]),
    Case("pixel_shuffle", at.PixelShuffle(2), ((2, 8, 3, 2),)),
    Case("pixel_shuffle", at.PixelShuffle(3), ((1, 9, 2, 2),), "3"),
    Case("pixel_shuffle", at.PixelShuffle(2, inverse=True), ((2, 3, 4, 6),), "inverse"),
    Case("pixel_shuffle", at.PixelShuffle(2), ((1, 16, 2, 1, 3),), "3d"),
    *(Case("grid_sample", a, shapes, note)
      for a, note in [
          (None, "default"), (at.GridSample("nearest"), "nearest"),
          (at.GridSample("bilinear"), "bilinear"), (at.GridSample("bicubic"), "bicubic"),
      ]
      for shapes in [((1, 2, 4, 5), (1, 3, 2, 2)), ((2, 1, 3, 3), (2, 4, 5, 2))]),
    *(Case("interp", a, (MAP,), note)
      for a, note in [
          (at.Interp((7, 9)), "size"), (at.Interp((5, 4)), "same"), (at.Interp(zoom=3), "zoom"),
          (at.Interp(shrink=2), "shrink"), (at.Interp(shrink=2, zoom=4), "both"),
          (at.Interp((3, 6), crop=(1, 0)), "cropped"), (at.Interp((1, 1)), "one"),
      ]),
    Case("interp", at.Interp(), (MAP, (2, 1, 3, 6)), "like another"),
    Case("unpool", at.Unpool(scale=(2, 2)), ((2, 3, 2, 3),) * 2),
    Case("unpool", at.Unpool(scale=(2, 2), less=(1, 0)), ((1, 2, 2, 2),) * 2, "less"),
    Case("unpool", at.Unpool((5, 4)), ((1, 2, 2, 2),) * 2, "size"),
    Case("affine_grid", at.AffineGrid((2, 3, 4, 5)), ((2, 2, 3),)),
    Case("affine_grid", at.AffineGrid((1, 1, 2, 3, 4), True), ((1, 3, 4),), "3d-corners"),
]  # fmt: skip
