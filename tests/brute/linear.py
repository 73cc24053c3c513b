"""Loops and cases of matrix products and determinants."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.graph import attributes as at
from layerscope.graph.attributes import Linear, MatMul
from tests.brute.arrays import Array, Index, Run, fill, places
from tests.brute.case import Case
from tests.brute.scalar import Scalar


def det(run: Run) -> list[Array]:
    """Every row cleared below the diagonal, then the product of what stands on it."""
    *lead, n, _ = run.x.shape

    def cell(index: Index) -> Scalar:
        rows = [[run.x[(*index, i, j)] for j in range(n)] for i in range(n)]
        for k in range(n):
            for i in range(k + 1, n):
                factor = rows[i][k] / rows[k][k]
                for j in range(k + 1, n):
                    rows[i][j] = rows[i][j] - factor * rows[k][j]
        result = rows[0][0]
        for k in range(1, n):
            result = result * rows[k][k]
        return result

    return [fill(tuple(lead), cell)]


def linear(run: Run) -> list[Array]:
    a: Linear = run.attributes
    x, weight = run.x, run.params["weight"]
    lead = a.axis % len(x.shape) if a.flatten else len(x.shape) - 1
    rows = list(places(x.shape[lead:]))

    def cell(index: Index) -> Scalar:
        result = run.number(0.0)
        for k, rest in enumerate(rows):
            result = result.mac(x[(*index[:-1], *rest)], weight[(index[-1], k)])
        return result + run.params["bias"][(index[-1],)] if a.bias else result

    return [fill((*x.shape[:lead], a.out_features), cell)]


def matmul(run: Run) -> list[Array]:
    """Batch axes of size 1 are read again for every place of the other side's."""
    a: MatMul = run.attributes or MatMul()
    left = _operand(run.inputs[0], "left", a.transpose_a)
    right = _operand(run.inputs[1], "right", a.transpose_b)
    rank = max(len(left.shape), len(right.shape)) - 2
    batch = tuple(max(_size(side, rank, axis) for side in (left, right)) for axis in range(rank))
    rows, depth, columns = left.shape[-2], left.shape[-1], right.shape[-1]

    def cell(index: Index) -> Scalar:
        *at, row, column = index
        result = run.number(0.0)
        for k in range(depth):
            result = result.mac(left[(*_at(left, at), row, k)], right[(*_at(right, at), k, column)])
        return result

    y = fill((*batch, rows, columns), cell)
    dropped = [len(batch)] * (len(run.inputs[0].shape) == 1)
    dropped += [len(batch) + 1] * (len(run.inputs[1].shape) == 1)
    kept = [axis for axis in range(len(y.shape)) if axis not in dropped]
    return [
        Array(
            tuple(y.shape[axis] for axis in kept),
            {tuple(index[axis] for axis in kept): cell for index, cell in y.cells.items()},
        )
    ]


def _operand(x: Array, side: str, swapped: bool) -> Array:
    if len(x.shape) == 1:  # a vector: a row on the left, a column on the right, never transposed
        if side == "left":
            return Array((1, *x.shape), {(0, *index): cell for index, cell in x.cells.items()})
        return Array((*x.shape, 1), {(*index, 0): cell for index, cell in x.cells.items()})
    if not swapped:
        return x
    *batch, m, n = x.shape
    return Array((*batch, n, m), {(*i[:-2], i[-1], i[-2]): cell for i, cell in x.cells.items()})


def _size(side: Array, rank: int, axis: int) -> int:
    place = axis - (rank - (len(side.shape) - 2))
    return side.shape[place] if place >= 0 else 1


def _at(side: Array, at: list[int]) -> Index:
    own = len(side.shape) - 2
    return tuple(
        i if size > 1 else 0 for i, size in zip(at[len(at) - own :], side.shape[:own], strict=True)
    )


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "det": det,
    "linear": linear,
    "matmul": matmul,
}

CASES: list[Case] = [
    Case("linear", at.Linear(4), ((3, 5),)),
    Case("linear", at.Linear(4, bias=False), ((2, 3, 5),), "last-axis"),
    Case("linear", at.Linear(3), ((2, 2, 3, 4),), "last-axis-biased"),
    Case("linear", at.Linear(4, flatten=True), ((2, 3, 2, 2),), "flattened"),
    Case("linear", at.Linear(4, bias=False, flatten=True), ((2, 6),), "flattened-matrix"),
    Case("linear", at.Linear(2), ((7,),), "vector"),
    Case("matmul", None, ((3, 4), (4, 5))),
    Case("matmul", at.MatMul(), ((2, 3, 4), (2, 4, 5)), "batched"),
    Case("matmul", at.MatMul(), ((2, 1, 3, 4), (5, 4, 2)), "broadcast"),
    Case("matmul", at.MatMul(transpose_b=True), ((2, 3, 4), (5, 4)), "right-turned"),
    Case("matmul", at.MatMul(transpose_a=True), ((2, 4, 3), (2, 4, 5)), "left-turned"),
    Case("matmul", at.MatMul(True, True), ((4, 3), (2, 5, 4)), "both-turned"),
    Case("matmul", None, ((4,), (2, 4, 5)), "vector-matrix"),
    Case("matmul", None, ((2, 3, 4), (4,)), "matrix-vector"),
    Case("matmul", None, ((4,), (4,)), "vectors"),
    Case("matmul", at.MatMul(True, True), ((4,), (2, 5, 4)), "turned-vector"),
    Case("linear", at.Linear(4, flatten=True, axis=2), ((2, 3, 2, 2),), "from-axis-2"),
    Case("linear", at.Linear(4, False, True, -1), ((2, 3, 5),), "last-axis"),
    Case("linear", at.Linear(3, True, True, 0), ((2, 3),), "all-axes"),
    Case("linear", at.Linear(4), ((3, 5), (4, 5)), "given"),
    Case("linear", at.Linear(4), ((2, 3, 5), (4, 5), (4,)), "given-both"),
    Case("det", None, ((3, 3),)),
    Case("det", None, ((2, 2, 4, 4),), "several"),
]  # fmt: skip
