"""Loops and cases of concatenation, splits, slices and crops."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.graph import attributes as at
from layerscope.graph.attributes import Concat, Crop, Slice, Split
from tests.brute.arrays import Array, Index, Run, fill
from tests.brute.case import Case
from tests.brute.scalar import Scalar


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


def taken_range(x: Array, axes: dict[int, range]) -> Array:
    """The elements at these places of each axis, in that order."""
    kept = [axes.get(axis, range(size)) for axis, size in enumerate(x.shape)]
    shape = tuple(map(len, kept))
    return fill(shape, lambda i: x[tuple(places[n] for places, n in zip(kept, i, strict=True))])


def split(run: Run) -> list[Array]:
    a: Split = run.attributes
    axis = a.axis % len(run.x.shape)
    pieces, start = [], 0
    for size in a.sizes:
        pieces.append(taken_range(run.x, {axis: range(start, start + size)}))
        start += size
    return pieces


def cut(run: Run) -> list[Array]:
    a: Slice = run.attributes
    axes = {}
    for n, axis in enumerate(a.axes):
        size = run.x.shape[axis]
        step = a.steps[n] if a.steps else 1
        axes[axis % len(run.x.shape)] = range(size)[a.starts[n] : a.ends[n] : step]
    return [taken_range(run.x, axes)]


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
    return [taken_range(x, axes)]


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "concat": concat,
    "split": split,
    "slice": cut,
    "insert": insert,
    "crop": crop,
}

CASES: list[Case] = [
    Case("concat", None, ((2, 3, 4), (2, 1, 4), (2, 2, 4))),
    Case("concat", at.Concat(-1), ((2, 3, 4), (2, 3, 1)), "last-axis"),
    Case("concat", at.Concat(0), ((2, 3),), "alone"),
    Case("split", at.Split(1, (1, 3, 2)), ((2, 6, 3),)),
    Case("split", at.Split(-1, (4, 1)), ((2, 3, 5),), "last-axis"),
    Case("split", at.Split(1, (3,)), ((2, 3),), "one-piece"),
    Case("slice", at.Slice((1, 2), (1, 0), (3, 5), (1, 2)), ((2, 4, 6),)),
    Case("slice", at.Slice((-1,), (-1,), (-(2**31),), (-2,)), ((2, 7),), "backwards"),
    Case("slice", at.Slice((0,), (-2,), (2**31,)), ((3, 2),), "open-ended"),
    Case("crop", None, ((1, 2, 6, 7), (1, 3, 4, 5))),
    Case("crop", at.Crop(2, (1, 2)), ((1, 2, 6, 7), (1, 1, 4, 5)), "two-offsets"),
    Case("crop", at.Crop(-1, (2,)), ((2, 2, 6), (3, 1, 3)), "last-axis"),
    Case("crop", at.Crop(1, (1,)), ((1, 4, 5), (1, 2, 3)), "channels-too"),
    Case("insert", at.Slice((1,), (1,), (3,)), ((2, 4, 3), (2, 2, 3))),
    Case("insert", at.Slice((-1,), (0,), (5,), (2,)), ((2, 5), (2, 3)), "steps"),
]  # fmt: skip
