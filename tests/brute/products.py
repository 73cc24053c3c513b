"""Linear layers and the product of two tensors, from their definitions."""

from __future__ import annotations

from layerscope.graph.attributes import Linear, MatMul
from tests.brute.arrays import Array, Index, Run, fill, places
from tests.brute.scalar import Scalar


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


BRUTE = {"linear": linear, "matmul": matmul}
