"""Linear algebra by the standard dense algorithms.

Outputs are those that the attributes declare, except for `det`, which has no attributes. Counts are
per matrix, without a search for pivots. Decompositions that iterate until they converge are counted
up to where the iteration begins, which is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable

from layerscope.errors import ShapeError
from layerscope.graph.attributes import DeclaredOutputs
from layerscope.graph.types import Shape, elements
from layerscope.ops.access_map import everything, keep
from layerscope.ops.autograd import BOTH, Saved
from layerscope.ops.spec import FREE, Call, Ops, OpSpec, broadcast, need_rank, shown

Matrix = Callable[[int, int], Ops]  # of rows and columns
Solve = Callable[[int, int], Ops]  # of equations and right-hand sides


def lu(m: int, n: int) -> Ops:
    """Gaussian elimination: every row below divided by the pivot, then cleared."""
    steps = min(m, n)
    wholes, squares = _sums(steps)
    below = steps * (m - 1) - wholes
    return Ops(mac=below * (n - 1) - (m - 1) * wholes + squares, div=below)


def cholesky(m: int, n: int) -> Ops:
    """Cholesky-Banachiewicz: every element less the products before it; roots on the diagonal."""
    return Ops(mac=(n - 1) * n * (n + 1) // 6, div=n * (n - 1) // 2, exp=n)


def reflections(m: int, n: int) -> Ops:
    """Householder: of every column a norm and a vector, which is applied to the columns behind."""
    steps = max(min(m - 1, n), 0)
    wholes, squares = _sums(steps)
    lengths, behind = steps * m - wholes, steps * (n - 1) - wholes
    products = lengths * (n - 1) - m * wholes + squares
    return Ops(mac=lengths + 2 * products, exp=steps, div=lengths, add=steps, mul=behind)


def applied(m: int, n: int, columns: int) -> Ops:
    """Householder reflections applied to `columns` columns, as Q is computed from the identity."""
    steps = max(min(m - 1, n), 0)
    return Ops(mac=2 * (steps * m - _sums(steps)[0]) * columns, mul=steps * columns)


def triangular(n: int, sides: int) -> Ops:
    """Substitution: every unknown less the products of those found, by the diagonal."""
    return Ops(mac=n * (n - 1) // 2, div=n) * sides


def lu_solve(n: int, sides: int) -> Ops:
    """Substitution twice; one of the triangles has ones on its diagonal."""
    return Ops(mac=n * (n - 1), div=n) * sides


def cholesky_solve(n: int, sides: int) -> Ops:
    """Substitution twice, by the same diagonal."""
    return triangular(n, sides) * 2


def _hessenberg(m: int, n: int) -> Ops:
    """Reflections from both sides, to a matrix with one diagonal below the main one."""
    wholes, _ = _sums(n)
    return Ops(mac=4 * n * max(wholes - 1, 0), exp=max(n - 2, 0))


def _tridiagonal(m: int, n: int) -> Ops:
    """As to Hessenberg form, of a symmetric matrix: a product, and a rank-2 update of one half."""
    wholes, squares = _sums(n)
    return Ops(mac=max(2 * squares + wholes - 3, 0), exp=max(n - 2, 0))


def _bidiagonal(m: int, n: int) -> Ops:
    """Golub-Kahan: a reflection of every column, and of every row."""
    long, short = max(m, n), min(m, n)
    wholes, squares = _sums(short)
    return Ops(mac=4 * ((long - short + 1) * wholes + squares), exp=2 * short)


def _sums(n: int) -> tuple[int, int]:
    """The sums of all whole numbers below n, and of their squares."""
    return n * (n - 1) // 2, n * (n - 1) * (2 * n - 1) // 6


def _shape(call: Call) -> tuple[Shape, ...]:
    need_rank(call, 2, "a matrix")
    a: DeclaredOutputs = call.attributes
    return a.shapes


def _square(call: Call) -> tuple[Shape, ...]:
    shapes = _shape(call)
    if call.x[-1] != call.x[-2]:
        raise ShapeError(f"{shown(call.x)}, expected as many rows as columns")
    return shapes


def _per_matrix(count: Matrix) -> Callable[[Call], Ops]:
    return lambda call: count(*call.x[-2:]) * elements(call.x[:-2])


def _sides(call: Call) -> tuple[int, int]:
    """Right-hand sides of one system, and how many systems: the second input, or its vectors."""
    left, right = call.inputs[:2]
    if len(right) < len(left) and (right == left[:-1] or len(right) == 1):  # vectors
        return 1, elements(left[:-2])
    return right[-1], elements(broadcast((left[:-2], right[:-2])))


def _solves(first: Matrix | None, then: Solve) -> Callable[[Call], Ops]:
    """A factorization of every matrix, and a solution of every system."""

    def ops(call: Call) -> Ops:
        n = call.x[-1]
        sides, systems = _sides(call)
        factors = FREE if first is None else first(n, n) * elements(call.x[:-2])
        return factors + then(n, sides) * systems

    return ops


def _inverse(m: int, n: int) -> Ops:
    return lu(n, n) + lu_solve(n, n)


def _slogdet(m: int, n: int) -> Ops:
    """Logarithms of the diagonal added up, and the product of its signs."""
    return lu(n, n) + Ops(exp=n, add=n - 1, comp=n, mul=n - 1)


def _qr(call: Call) -> Ops:
    """Both factors; of the first output without elements only R is wanted."""
    m, n = call.x[-2:]
    factors = reflections(m, n)
    columns = call.outputs[0][-1] if elements(call.outputs[0]) else 0
    return (factors + applied(m, n, columns)) * elements(call.x[:-2])


def _householder(call: Call) -> Ops:
    m, n = call.x[-2:]
    return applied(m, call.inputs[1][-1], n) * elements(call.x[:-2])


def _exponential(m: int, n: int) -> Ops:
    """A polynomial of degree 2, the least that is taken: a product and a sum of three terms."""
    return Ops(mac=n**3, add=2 * n * n, mul=n * n)


def _det_shape(call: Call) -> tuple[Shape, ...]:
    need_rank(call, 2, "a determinant")
    if call.x[-1] != call.x[-2]:
        raise ShapeError(f"a determinant of {call.x}, expected as many rows as columns")
    return (call.x[:-2],)


def _det_ops(call: Call) -> Ops:
    """Every row cleared by those above it, then the product of the diagonal."""
    n = call.x[-1]
    inner = (n - 1) * n * (2 * n - 1) // 6
    return Ops(div=n * (n - 1) // 2, mul=inner + n - 1, add=inner) * elements(call.y)


def _rule(
    ops: Callable[[Call], Ops], estimate: str, *, square: bool = False, inputs: int = 1
) -> OpSpec:
    return OpSpec(
        family="algebra",
        attributes=DeclaredOutputs,
        shape=_square if square else _shape,
        ops=ops,
        access_map=lambda call: everything(call.outputs if len(call.outputs) > 1 else call.inputs),
        backward=lambda call: (ops(call) * 2, FREE),
        saved_for_backward=lambda call: Saved(
            inputs=tuple(range(len(call.inputs))), outputs=tuple(range(len(call.outputs)))
        ),
        arity=(inputs, inputs + 1),
        out_dtypes=("attribute",),
        estimate=estimate,
    )


ELIMINATION = "by elimination, without a search for pivots"
REDUCED = "at least the reduction to {} form by Householder reflections; iterations are not counted"

SPECS = {
    "lu": _rule(_per_matrix(lu), ELIMINATION),
    "det": OpSpec(
        family="linear",
        shape=_det_shape,
        ops=_det_ops,
        access_map=lambda call: (keep(range(len(call.y))),),
        backward=lambda call: (_det_ops(call) * 2, FREE),
        saved_for_backward=lambda call: BOTH,
        estimate=ELIMINATION,
    ),
    "slogdet": _rule(_per_matrix(_slogdet), ELIMINATION, square=True),
    "inverse": _rule(_per_matrix(_inverse), ELIMINATION, square=True),
    "solve": _rule(_solves(lu, lu_solve), ELIMINATION, square=True, inputs=2),
    "lu_solve": _rule(_solves(None, lu_solve), "by substitution", square=True, inputs=2),
    "triangular_solve": _rule(_solves(None, triangular), "by substitution", square=True, inputs=2),
    "cholesky": _rule(_per_matrix(cholesky), "by the Cholesky-Banachiewicz algorithm", square=True),
    "cholesky_solve": _rule(
        _solves(None, cholesky_solve), "by substitution", square=True, inputs=2
    ),
    "qr": _rule(_qr, "by Householder reflections"),
    "householder_product": _rule(_householder, "by Householder reflections", inputs=2),
    "svd": _rule(_per_matrix(_bidiagonal), REDUCED.format("bidiagonal")),
    "eigh": _rule(_per_matrix(_tridiagonal), REDUCED.format("tridiagonal"), square=True),
    "eig": _rule(_per_matrix(_hessenberg), REDUCED.format("Hessenberg"), square=True),
    "matrix_exp": _rule(
        _per_matrix(_exponential), "at least a polynomial of degree 2; numbers decide the degree",
        square=True,
    ),
}  # fmt: skip
