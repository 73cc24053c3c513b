"""Loops and cases of regions of interest and boxes."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

from layerscope.graph import attributes as at
from layerscope.graph.attributes import NonMaxSuppression, PriorBox, RoIAlign
from tests.brute.arrays import Array, Index, Run, fill, greatest, total
from tests.brute.case import Case
from tests.brute.pooling import bin_of, mean_of
from tests.brute.scalar import Scalar


def psroi_pool(run: Run) -> list[Array]:
    """Means over bins of the whole map, each bin from channels of its own."""
    a: at.PSRoIPool = run.attributes
    x, regions = run.inputs

    def span(size: int, b: int) -> range:
        return range(b * size // a.group, -(-(b + 1) * size // a.group))

    def cell(index: Index) -> Scalar:
        region, channel, i, j = index
        image = round(regions[(region, 0)].value)
        source = (channel * a.group + i) * a.group + j
        rows, columns = span(x.shape[2], i), span(x.shape[3], j)
        return mean_of([x[(image, source, r, c)] for r in rows for c in columns])

    return [fill((regions.shape[0], a.channels, a.group, a.group), cell)]


OVERLAP = 0.5  # from where on a box gives way to a better one

STEP = 8.0  # of prior boxes, in pixels of the image


def _corner(place: float, size: int) -> list[tuple[int, float]]:
    """Two neighbours of a place on the map, the last twice at its end."""
    place = max(place, 0.0)
    low = min(math.floor(place), size - 1)
    part = place - low if low < size - 1 else 0.0
    return [(low, 1 - part), (min(low + 1, size - 1), part)]


def roi_align(run: Run) -> list[Array]:
    """Means of bilinear samples, evenly spread over each bin; a sample off the map is nought."""
    a: RoIAlign = run.attributes
    x, regions = run.inputs[:2]
    sizes, bins = x.shape[2:], a.output

    def start_and_length(region: int, axis: int) -> tuple[float, float]:
        column = regions.shape[1] - 4 + (1 - axis)  # x before y
        first, last = (regions[(region, column + n)].value * a.scale - 0.5 for n in (0, 2))
        return first, last - first

    def sample(image: int, channel: int, at: list[float]) -> Scalar:
        off = any(p < -1 or p > size for p, size in zip(at, sizes, strict=True))
        terms = []
        for corner in product(*map(_corner, at, sizes)):
            place = (image, channel, *(i for i, _ in corner))
            taken = run.border() if off else x[place]
            terms.append(taken * math.prod(weight for _, weight in corner))
        return total(terms)

    def cell(index: Index) -> Scalar:
        region, channel, *bin_at = index
        image = 0
        if regions.shape[1] == 5:
            image = round(regions[(region, 0)].value)
        elif len(run.inputs) == 3:
            image = round(run.inputs[2][(region,)].value)
        along = []
        for axis, b in enumerate(bin_at):
            start, length = start_and_length(region, axis)
            parts = [(b + (s + 0.5) / a.samples) / bins[axis] for s in range(a.samples)]
            along.append([start + part * length for part in parts])
        samples = [sample(image, channel, list(at)) for at in product(*along)]
        return total(samples) / float(len(samples))

    return [fill((regions.shape[0], x.shape[1], *bins), cell)]


def _side(low: Scalar, high: Scalar) -> Scalar:
    return (high - low).larger(0.0)


def nms(run: Run) -> list[Array]:
    """The best that is left is kept, and all that overlap it too much go, in whole rows.

    Every round looks at all boxes, those gone as well, as vector code does; areas are made once.
    """
    a: NonMaxSuppression = run.attributes
    boxes, scores = run.inputs
    images, count, _ = boxes.shape
    kept: list[tuple[int, int, int]] = []
    for n in range(images):
        edges = [[boxes[(n, b, i)] for i in range(4)] for b in range(count)]
        areas = [(bottom - top) * (right - left) for top, left, bottom, right in edges]
        for c in range(scores.shape[1]):
            left_over = [scores[(n, c, b)] for b in range(count)]
            for _ in range(min(a.most, count)):
                best = 0
                for b in range(1, count):
                    left_over[b].larger(left_over[best])
                    best = b if left_over[b].value > left_over[best].value else best
                if left_over[best].value == -math.inf:
                    break
                kept.append((n, c, best))
                for b in range(count):
                    top, left = (edges[b][i].larger(edges[best][i]) for i in (0, 1))
                    bottom, right = (edges[b][i].smaller(edges[best][i]) for i in (2, 3))
                    shared = _side(top, bottom) * _side(left, right)
                    overlap = shared / (areas[b] + areas[best] - shared)
                    left_over[b] = overlap.above(OVERLAP, -math.inf, left_over[b])
    return [fill((len(kept), 3), lambda index: run.number(kept[index[0]][index[1]]))]


def half_sizes(boxes: int) -> list[tuple[float, float]]:
    """Half the width and height of each default box, known before anything runs."""
    return [(4.0 + 3 * n, 5.0 + 2 * n) for n in range(boxes)]


VARIANCES = (0.1, 0.1, 0.2, 0.2)


def prior_box(run: Run) -> list[Array]:
    """Edges of boxes around every place, in parts of the image; then a copy of the variances."""
    a: PriorBox = run.attributes
    (height, width), image = run.inputs[0].shape[2:], run.inputs[1].shape[2:]
    edges = []
    for i, j in product(range(height), range(width)):
        down = (run.number(i) + 0.5) * STEP
        across = (run.number(j) + 0.5) * STEP
        for half_width, half_height in half_sizes(a.boxes):
            edges += [
                (across - half_width) / float(image[1]),
                (down - half_height) / float(image[0]),
                (across + half_width) / float(image[1]),
                (down + half_height) / float(image[0]),
            ]
    rows = edges, [run.number(VARIANCES[n % 4]) for n in range(len(edges))]
    return [fill((1, 2, len(edges)), lambda index: rows[index[1]][index[2]])]


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


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "psroi_pool": psroi_pool,
    "roi_align": roi_align,
    "nms": nms,
    "prior_box": prior_box,
    "roi_pool": roi_pool,
}

CASES: list[Case] = [
    Case("roi_pool", at.RoIPool((2, 3)), ((1, 2, 4, 6), (3, 5)), "even"),
    Case("roi_pool", at.RoIPool((3, 2)), ((2, 2, 7, 5), (2, 5)), "overlapping"),
    Case("roi_pool", at.RoIPool((2, 2), 0.5), ((1, 1, 6, 5), (2, 5)), "scaled"),
    Case("roi_align", at.RoIAlign((2, 3)), ((2, 2, 6, 5), (3, 5))),
    Case("roi_align", at.RoIAlign((2, 2), 1, 0.5), ((1, 3, 4, 4), (2, 4)), "first-image"),
    Case("roi_align", at.RoIAlign((1, 2), 3, 0.25), ((3, 1, 5, 6), (4, 4), (4,)), "images-apart"),
    Case("nms", at.NonMaxSuppression(3), ((2, 5, 4), (2, 2, 5)), "some"),
    Case("nms", at.NonMaxSuppression(9), ((1, 4, 4), (1, 3, 4)), "all"),
    Case("prior_box", at.PriorBox(3), ((1, 4, 2, 3), (1, 3, 20, 30))),
    Case("prior_box", at.PriorBox(1), ((2, 8, 3, 1), (2, 3, 24, 8)), "one"),
    Case("psroi_pool", at.PSRoIPool(2, 3), ((2, 18, 7, 5), (4, 5))),
    Case("psroi_pool", at.PSRoIPool(1, 2, 0.5), ((1, 4, 4, 4), (2, 5)), "scaled"),
]  # fmt: skip
