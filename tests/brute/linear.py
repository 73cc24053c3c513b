"""Loops and cases of matrix products and einsum."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

from layerscope.graph import attributes as at
from layerscope.graph.attributes import Einsum, Linear, MatMul
from layerscope.graph.types import Shape
from tests.brute.arrays import Array, Index, Run, fill, places, total
from tests.brute.case import Case
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


Lettered = tuple[str, Array]


def einsum(run: Run) -> list[Array]:
    """Joined in pairs from the left; what no later operand nor the result has is summed at once."""
    a: Einsum = run.attributes
    terms, right = letters(a.equation, [x.shape for x in run.inputs])
    operands = list(zip(terms, run.inputs, strict=True))
    if len(operands) == 1:
        return [_summed(operands[0], right)]
    joined = operands[0]
    for n, operand in enumerate(operands[1:], 1):
        later = set(right).union(*terms[n + 1 :])
        last = n == len(operands) - 1
        kept = "".join(sorted((set(joined[0]) | set(operand[0])) & later))
        joined = _joined(run, joined, operand, right if last else kept)
    return [joined[1]]


def letters(equation: str, shapes: Iterable[Shape]) -> tuple[list[str], str]:
    """A letter for every axis; digits, counted from the last axis, for those under an ellipsis."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms, hidden = [], ""
    for term, shape in zip(left.split(","), shapes, strict=True):
        under = "3210"[4 - (len(shape) - len(term.replace("...", ""))) :] if "..." in term else ""
        hidden = max(hidden, under, key=len)
        terms.append(term.replace("...", under))
    if not arrow:
        once = [name for name in "".join(terms) if "".join(terms).count(name) == 1]
        right = "..." + "".join(sorted(name for name in once if name.isalpha()))
    return terms, right.replace("...", hidden)


def _sizes(*operands: Lettered) -> dict[str, int]:
    """An axis of one stands for as many as the other side has."""
    sizes: dict[str, int] = {}
    for names, x in operands:
        for name, size in zip(names, x.shape, strict=True):
            sizes[name] = max(size, sizes.get(name, 1))
    return sizes


def _element(operand: Lettered, at: dict[str, int]) -> Scalar:
    names, x = operand
    return x[tuple(at[name] % size for name, size in zip(names, x.shape, strict=True))]


def _over(names: Iterable[str], sizes: dict[str, int]) -> Iterable[dict[str, int]]:
    letters = list(names)
    for index in product(*(range(sizes[name]) for name in letters)):
        yield dict(zip(letters, index, strict=True))


def _summed(operand: Lettered, right: str) -> Array:
    sizes = _sizes(operand)
    gone = [name for name in sizes if name not in right]

    def cell(index: Index) -> Scalar:
        at = dict(zip(right, index, strict=True))
        return total(_element(operand, {**at, **rest}) for rest in _over(gone, sizes))

    return fill(tuple(sizes[name] for name in right), cell)


def _joined(run: Run, one: Lettered, other: Lettered, kept: str) -> Lettered:
    sizes = _sizes(one, other)
    gone = [name for name in sizes if name not in kept]

    def cell(index: Index) -> Scalar:
        at = dict(zip(kept, index, strict=True))
        if not gone:
            return _element(one, at) * _element(other, at)
        result = run.number(0.0)
        for rest in _over(gone, sizes):
            result = result.mac(_element(one, {**at, **rest}), _element(other, {**at, **rest}))
        return result

    return kept, fill(tuple(sizes[name] for name in kept), cell)


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "linear": linear,
    "matmul": matmul,
    "einsum": einsum,
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
    *(Case("einsum", at.Einsum(equation), shapes, equation)
      for equation, shapes in [
          ("ij->ji", ((2, 3),)),
          ("ijk->ik", ((2, 3, 4),)),
          ("ij->", ((2, 3),)),
          ("ba", ((2, 3),)),
          ("ii->i", ((3, 3),)),
          ("ii", ((3, 3),)),
          ("iji->j", ((2, 3, 2),)),
          ("...i->...", ((2, 3, 4),)),
          ("...ji", ((5, 2, 3),)),
          ("ij,jk->ik", ((2, 3), (3, 4))),
          ("ij,jk", ((2, 3), (3, 4))),
          ("cB,Ba", ((2, 3), (3, 4))),
          ("bij,bjk->bik", ((2, 2, 3), (2, 3, 4))),
          ("bhqd,bkhd->bhqk", ((2, 2, 3, 4), (2, 5, 2, 4))),
          ("i,j->ij", ((3,), (4,))),
          ("ij,ij->ij", ((3, 2), (3, 2))),
          ("i,i->", ((4,), (4,))),
          ("ij,k->ik", ((2, 3), (4,))),
          (",i->i", ((), (3,))),
          ("iij,jk->ik", ((3, 3, 2), (2, 4))),
          ("...ij,...jk", ((5, 2, 3), (5, 3, 4))),
          ("...ij,jk->...ik", ((2, 5, 2, 3), (3, 4))),
          ("i...,jk->ik...", ((2, 3, 2), (3, 4))),
          ("ij,jk->ik", ((2, 1), (3, 4))),
          ("i,i,i->i", ((1,), (1,), (3,))),
          ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))),
          ("i,j,k->ijk", ((2,), (3,), (4,))),
          ("ij,i,ij->j", ((2, 3), (2,), (2, 3))),
          ("bij,bjk,k,bl->bil", ((2, 2, 3), (2, 3, 2), (2,), (2, 3))),
          ("...i,...i,...j->...j", ((2, 3), (2, 3), (2, 4))),
      ]),
]  # fmt: skip
