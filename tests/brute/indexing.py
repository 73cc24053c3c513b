"""Loops and cases of gather, scatter, embeddings and other ops by index."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.graph import attributes as at
from layerscope.graph.attributes import Embedding, Gather, OneHot, Scatter, Table
from tests.brute.arrays import Array, Index, Run, fill
from tests.brute.case import Case
from tests.brute.scalar import Scalar

SHIFT = 2  # by how much a roll moves every axis but the first: the rule does not ask


def _whole(number: Scalar) -> int:
    return round(number.value)


def gather(run: Run) -> list[Array]:
    a: Gather = run.attributes or Gather()
    x, indices = run.inputs
    axis = a.axis % len(x.shape)
    if a.elements:
        return [
            fill(
                indices.shape,
                lambda i: x[(*i[:axis], _whole(indices[i]), *i[axis + 1 :])],
            )
        ]
    rank = len(indices.shape)

    def cell(index: Index) -> Scalar:
        chosen = _whole(indices[index[axis : axis + rank]])
        return x[(*index[:axis], chosen, *index[axis + rank :])]

    return [fill((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), cell)]


def gather_nd(run: Run) -> list[Array]:
    batch = run.attributes.batch if run.attributes else 0
    x, indices = run.inputs
    lead, deep = len(indices.shape) - 1, batch + indices.shape[-1]

    def cell(index: Index) -> Scalar:
        told = (_whole(indices[(*index[:lead], n)]) for n in range(indices.shape[-1]))
        return x[(*index[:batch], *told, *index[lead:])]

    return [fill((*indices.shape[:-1], *x.shape[deep:]), cell)]


def scatter_nd(run: Run) -> list[Array]:
    a: Scatter = run.attributes or Scatter()
    x, indices, updates = run.inputs
    lead = len(indices.shape) - 1
    cells = dict(x.cells)
    for index, update in updates.cells.items():
        told = (_whole(indices[(*index[:lead], n)]) for n in range(indices.shape[-1]))
        place = (*told, *index[lead:])
        cells[place] = cells[place] + update if a.add else update
    return [Array(x.shape, cells)]


def one_hot(run: Run) -> list[Array]:
    a: OneHot = run.attributes
    axis = a.axis % (len(run.x.shape) + 1)

    def cell(index: Index) -> Scalar:
        number = run.x[(*index[:axis], *index[axis + 1 :])]
        return number.once("comp", lambda v: float(v == index[axis]))

    return [fill((*run.x.shape[:axis], a.depth, *run.x.shape[axis:]), cell)]


def scatter(run: Run) -> list[Array]:
    a: Scatter = run.attributes or Scatter()
    x, indices, updates = run.inputs
    axis = a.axis % len(x.shape)
    cells = dict(x.cells)
    for index, update in updates.cells.items():
        place = (*index[:axis], _whole(indices[index]), *index[axis + 1 :])
        cells[place] = cells[place] + update if a.add else update
    return [Array(x.shape, cells)]


def where(run: Run) -> list[Array]:
    """One look at each condition."""
    rank = max(len(x.shape) for x in run.inputs)
    wide = [(1,) * (rank - len(x.shape)) + x.shape for x in run.inputs]
    shape = tuple(max(sizes) for sizes in zip(*wide, strict=True))

    def cell(index: Index) -> Scalar:
        condition, then, otherwise = (
            x[tuple(i % n for i, n in zip(index[rank - len(x.shape) :], x.shape, strict=True))]
            for x in run.inputs
        )
        return condition.above(0.5, then, otherwise)

    return [fill(shape, cell)]


def embedding(run: Run) -> list[Array]:
    a: Embedding = run.attributes
    weight = run.params["weight"]

    def cell(index: Index) -> Scalar:
        row = run.x[index[:-1]]
        taken = weight[(_whole(row), index[-1])]
        return Scalar(taken.value, run.tally, row.seen)

    return [fill((*run.x.shape, a.features), cell)]


def table(run: Run) -> list[Array]:
    a: Table = run.attributes
    weight = run.params["weight"]
    if not a.batched:
        return [weight]
    return [fill((run.x.shape[0], *a.shape[1:]), lambda index: weight[(0, *index[1:])])]


def positions(run: Run) -> list[Array]:
    return [fill((1, run.x.shape[1]), lambda index: run.number(index[1]))]


def roll(run: Run) -> list[Array]:
    x = run.x

    def cell(index: Index) -> Scalar:
        moved = ((i - SHIFT) % size for i, size in zip(index[1:], x.shape[1:], strict=True))
        return x[(index[0], *moved)]

    return [fill(x.shape, cell)]


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "gather": gather,
    "scatter": scatter,
    "gather_nd": gather_nd,
    "scatter_nd": scatter_nd,
    "one_hot": one_hot,
    "where": where,
    "embedding": embedding,
    "table": table,
    "positions": positions,
    "roll": roll,
}

CASES: list[Case] = [
    Case("gather", None, ((5, 3), (4,))),
    Case("gather", at.Gather(1), ((2, 5, 3), (2, 2)), "matrix-of-indices"),
    Case("gather", at.Gather(-1), ((2, 5), ()), "one-index"),
    Case("gather", at.Gather(0, elements=True), ((4, 3), (2, 3)), "elements"),
    Case("gather", at.Gather(-1, elements=True), ((2, 3, 4), (2, 2, 6)), "elements-in-part"),
    Case("scatter", None, ((4, 3), (2, 3), (2, 3))),
    Case("scatter", at.Scatter(1), ((2, 5, 3), (2, 2, 2), (2, 2, 2)), "in-part"),
    Case("scatter", at.Scatter(-1, add=True), ((2, 4), (2, 7), (2, 7)), "added"),
    Case("where", None, ((2, 3),) * 3),
    Case("where", None, ((3, 1), (2, 1, 4), ()), "broadcast"),
    Case("where", None, ((1, 1, 3, 3), (2, 2, 3, 3), (1,)), "masked-scores"),
    Case("embedding", at.Embedding(7, 3), ((2, 4),)),
    Case("embedding", at.Embedding(5, 2), ((3,),), "vector"),
    Case("embedding", at.Embedding(4, 3), ((2, 2, 2),), "three-axes"),
    Case("table", at.Table((1, 4, 3)), ((2, 4, 3),)),
    Case("table", at.Table((1, 1, 3), batched=True), ((2, 4, 3),), "batched"),
    Case("positions", None, ((2, 5),)),
    Case("positions", None, ((1, 3, 4),), "features"),
    Case("roll", None, ((2, 4, 5, 3),)),
    Case("roll", None, ((1, 3, 2),), "past-the-end"),
    Case("gather_nd", None, ((4, 3), (2, 2)), "elements"),
    Case("gather_nd", at.GatherND(), ((4, 3, 2), (2, 5, 1)), "slices"),
    Case("gather_nd", at.GatherND(1), ((2, 4, 3), (2, 5, 1)), "batched"),
    Case("scatter_nd", None, ((4, 3), (2, 2), (2,)), "elements"),
    Case("scatter_nd", at.Scatter(), ((4, 3), (2, 1), (2, 3)), "slices"),
    Case("scatter_nd", at.Scatter(add=True), ((4, 3, 2), (5, 1, 2), (5, 1, 2)), "added"),
    Case("one_hot", at.OneHot(5), ((2, 3),)),
    Case("one_hot", at.OneHot(4, 1), ((2, 3),), "between"),
    Case("one_hot", at.OneHot(3, 0), ((4,),), "in-front"),
    Case("embedding", at.Embedding(7, 3), ((2, 4), (7, 3)), "given"),
]  # fmt: skip
