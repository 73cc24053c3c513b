"""Loops and cases of reshapes, permutations, copies and padding."""

from __future__ import annotations

import math
from collections.abc import Callable

from layerscope.graph import attributes as at
from layerscope.graph.attributes import Expand, Flatten, Pad, Permute, Reshape, ReverseSequence
from layerscope.graph.types import Shape
from tests.brute.arrays import Array, Index, Run, fill, places
from tests.brute.case import MAP, Case
from tests.brute.scalar import BORDER, Scalar
from tests.brute.slice_concat import taken_range


def tile(run: Run) -> list[Array]:
    a: at.Tile = run.attributes
    axis = a.axis % len(run.x.shape)
    size = run.x.shape[axis]
    shape = (*run.x.shape[:axis], size * a.times, *run.x.shape[axis + 1 :])
    return [fill(shape, lambda i: run.x[(*i[:axis], i[axis] % size, *i[axis + 1 :])])]


def expand(run: Run) -> list[Array]:
    a: Expand = run.attributes
    x = run.x
    own = len(a.shape) - len(x.shape)
    have = (1,) * own + x.shape
    shape = tuple(
        size if wanted in (0, -1) else wanted for size, wanted in zip(have, a.shape, strict=True)
    )
    return [fill(shape, lambda i: x[tuple(n % m for n, m in zip(i[own:], x.shape, strict=True))])]


def channel_shuffle(run: Run) -> list[Array]:
    """Channel c of the result is the (c mod groups)-th group's next one."""
    groups = run.attributes.groups
    each = run.x.shape[1] // groups
    return [
        fill(run.x.shape, lambda i: run.x[(i[0], i[1] % groups * each + i[1] // groups, *i[2:])])
    ]


def reverse_sequence(run: Run) -> list[Array]:
    a: ReverseSequence = run.attributes
    x, lengths = run.inputs

    def cell(index: Index) -> Scalar:
        length = round(lengths[(index[a.batch_axis],)].value)
        t = index[a.time_axis]
        turned = length - 1 - t if t < length else t
        return x[(*index[: a.time_axis], turned, *index[a.time_axis + 1 :])]

    return [fill(x.shape, cell)]


def identity(run: Run) -> list[Array]:
    return [run.x]


def repeat(run: Run) -> list[Array]:
    x, times = run.x, run.attributes.times
    shape = tuple(size * n for size, n in zip(x.shape, times, strict=True))
    return [fill(shape, lambda i: x[tuple(n % m for n, m in zip(i, x.shape, strict=True))])]


def flip(run: Run) -> list[Array]:
    axes = {axis % len(run.x.shape): range(run.x.shape[axis])[::-1] for axis in run.attributes.axes}
    return [taken_range(run.x, axes)]


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


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "tile": tile,
    "expand": expand,
    "channel_shuffle": channel_shuffle,
    "reverse_sequence": reverse_sequence,
    "identity": identity,
    "dropout": identity,
    "repeat": repeat,
    "flip": flip,
    "trilu": trilu,
    "reshape": reshape,
    "flatten": flatten,
    "permute": permute,
    "pad": pad,
}

CASES: list[Case] = [
    Case("reshape", at.Reshape((0, -1)), ((2, 3, 4),)),
    Case("reshape", at.Reshape((1, 2, 3, 4)), ((2, 3, 4),), "longer"),
    Case("reshape", at.Reshape((0, 2, -1, 4, 2)), ((1, 6, 4, 2),), "channels-grouped"),
    Case("flatten", None, ((2, 3, 4, 2),)),
    Case("flatten", at.Flatten(0, 1), ((2, 3, 4),), "front"),
    Case("flatten", at.Flatten(-2), ((2, 3, 4, 2),), "back"),
    Case("flatten", None, ((5,),), "vector"),
    Case("identity", None, ((2, 3),)),
    Case("dropout", at.Dropout(), ((2, 3, 4),)),
    Case("permute", at.Permute((0, 2, 3, 1)), ((2, 3, 4, 5),)),
    Case("pad", at.Pad(((0, 0), (1, 0), (2, 3))), ((2, 2, 3),)),
    Case("pad", at.Pad(((0, 0), (0, 0), (2, 3), (1, 2)), "reflect"), ((1, 2, 5, 4),), "reflect"),
    Case("pad", at.Pad(((0, 0), (0, 0), (2, 5)), "edge"), ((1, 2, 3),), "edge"),
    Case("pad", at.Pad(((0, 0), (-1, 2), (1, -2))), ((2, 3, 5),), "cutting"),
    Case("expand", at.Expand((2, 3, 4)), ((2, 1, 4),)),
    Case("expand", at.Expand((2, 3, 4)), ((4,),), "more-axes"),
    Case("expand", at.Expand((5, -1, 0)), ((1, 3, 1),), "axes-kept"),
    Case("tile", at.Tile(1, 3), (MAP,)),
    Case("tile", at.Tile(-1, 2), ((2, 3),), "last"),
    Case("tile", at.Tile(0, 1), (MAP,), "once"),
    Case("channel_shuffle", at.ChannelShuffle(2), ((2, 6, 3, 2),)),
    Case("channel_shuffle", at.ChannelShuffle(3), ((1, 6),), "vector"),
    Case("reshape", at.Reshape((2, -1), axis=1), ((2, 4, 3),), "from-axis-1"),
    Case("reshape", at.Reshape((1,), axis=1, axes=0), ((2, 8),), "new-axis"),
    Case("reshape", at.Reshape((6,), axis=0, axes=2), ((2, 3, 4),), "two-axes"),
    Case("reshape", at.Reshape((1,), axis=-1), ((2, 8),), "behind"),
    Case("reshape", at.Reshape((0, 2, 2), axis=-3), ((2, 4),), "from-behind"),
    Case("repeat", at.Repeat((2, 1, 3)), ((2, 3, 2),)),
    Case("repeat", at.Repeat((4,)), ((3,),), "vector"),
    Case("flip", at.Flip((1,)), ((2, 3, 4),)),
    Case("flip", at.Flip((0, -1)), ((2, 3, 4),), "two"),
    Case("trilu", None, ((2, 3, 4),)),
    Case("reverse_sequence", at.ReverseSequence(), ((4, 2, 3), (2,))),
    Case("reverse_sequence", at.ReverseSequence(0, 1), ((3, 4), (3,)), "batch-first"),
]  # fmt: skip
