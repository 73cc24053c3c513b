"""Loops and cases of linear algebra."""

from __future__ import annotations

import math
from collections.abc import Callable

from tests.brute.arrays import Array, Index, Run, fill, places, total
from tests.brute.case import Case, declared
from tests.brute.scalar import Scalar

Rows = list[list[Scalar]]


def _less(x: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """x − a·b, one multiply-add."""
    made = x.mac(a, b)
    made.value = x.value - a.value * b.value
    return made


def _eliminate(rows: Rows) -> Rows:
    """Factors below the diagonal, what is left above it."""
    for k in range(min(len(rows), len(rows[0]))):
        for i in range(k + 1, len(rows)):
            rows[i][k] = rows[i][k] / rows[k][k]
            for j in range(k + 1, len(rows[0])):
                rows[i][j] = _less(rows[i][j], rows[i][k], rows[k][j])
    return rows


def _substitute(rows: Rows, side: list[Scalar], *, below: bool, unit: bool) -> list[Scalar]:
    n = len(rows)
    order = range(n) if below else reversed(range(n))
    found = list(side)
    for i in order:
        for j in range(i) if below else range(i + 1, n):
            found[i] = _less(found[i], rows[i][j], found[j])
        if not unit:
            found[i] = found[i] / rows[i][i]
    return found


def _matrix(x: Array, lead: Index) -> Rows:
    m, n = x.shape[-2:]
    return [[x[(*lead, i, j)] for j in range(n)] for i in range(m)]


def _each(work: Callable[[Run, Index], Rows]) -> Callable[[Run], list[Array]]:
    """Of every matrix of a batch one matrix."""

    def run_it(run: Run) -> list[Array]:
        cells: dict[Index, Scalar] = {}
        for lead in places(run.x.shape[:-2]):
            for i, row in enumerate(work(run, lead)):
                cells.update({(*lead, i, j): value for j, value in enumerate(row)})
        return [Array(run.attributes.shapes[0], cells)]

    return run_it


def _columns(made: list[list[Scalar]]) -> Rows:
    return [list(row) for row in zip(*made, strict=True)]


def _sides(run: Run, lead: Index) -> list[list[Scalar]]:
    b = _matrix(run.inputs[1], lead)
    return [[row[k] for row in b] for k in range(len(b[0]))]


def _identity(run: Run, n: int) -> list[list[Scalar]]:
    return [[run.number(float(i == k)) for i in range(n)] for k in range(n)]


def _lu_solved(rows: Rows, sides: list[list[Scalar]]) -> Rows:
    made = []
    for side in sides:
        lower = _substitute(rows, side, below=True, unit=True)
        made.append(_substitute(rows, lower, below=False, unit=False))
    return _columns(made)


def lu(run: Run, lead: Index) -> Rows:
    return _eliminate(_matrix(run.x, lead))


def solve(run: Run, lead: Index) -> Rows:
    return _lu_solved(_eliminate(_matrix(run.x, lead)), _sides(run, lead))


def lu_solve(run: Run, lead: Index) -> Rows:
    return _lu_solved(_matrix(run.x, lead), _sides(run, lead))


def inverse(run: Run, lead: Index) -> Rows:
    rows = _eliminate(_matrix(run.x, lead))
    return _lu_solved(rows, _identity(run, len(rows)))


def triangular_solve(run: Run, lead: Index) -> Rows:
    rows = _matrix(run.x, lead)
    sides = _sides(run, lead)
    return _columns([_substitute(rows, side, below=False, unit=False) for side in sides])


def cholesky(run: Run, lead: Index) -> Rows:
    """Of numbers that need not be positive definite: the root is taken of their size."""
    a = _matrix(run.x, lead)
    n = len(a)
    made: Rows = [[run.number(0.0) for _ in range(n)] for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            value = a[i][j]
            for k in range(j):
                value = _less(value, made[i][k], made[j][k])
            made[i][j] = (
                value.apply(lambda v: math.sqrt(abs(v)) + 1) if i == j else value / made[j][j]
            )
    return made


def cholesky_solve(run: Run, lead: Index) -> Rows:
    rows, made = _matrix(run.x, lead), []
    for side in _sides(run, lead):
        lower = _substitute(rows, side, below=True, unit=False)
        made.append(_substitute(rows, lower, below=False, unit=False))
    return _columns(made)


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


def slogdet(run: Run) -> list[Array]:
    signs: dict[Index, Scalar] = {}
    logs: dict[Index, Scalar] = {}
    for lead in places(run.x.shape[:-2]):
        rows = _eliminate(_matrix(run.x, lead))
        diagonal = [rows[k][k] for k in range(len(rows))]
        logs[lead] = total([x.apply(lambda v: math.log(abs(v) + 1)) for x in diagonal])
        each = [x.once("comp", lambda v: math.copysign(1, v)) for x in diagonal]
        sign = each[0]
        for other in each[1:]:
            sign = sign * other
        signs[lead] = sign
    return [Array(run.x.shape[:-2], signs), Array(run.x.shape[:-2], logs)]


def _reflect(vector: list[Scalar], columns: Rows, scale: Scalar) -> None:
    """Columns less twice their part along a vector."""
    for column in columns:
        dot = Scalar(0.0, scale.tally)
        for a, b in zip(vector, column, strict=True):
            dot = dot.mac(a, b)
        dot = dot * scale
        for i, a in enumerate(vector):
            column[i] = _less(column[i], a, dot)


def _norm(run: Run, column: list[Scalar]) -> Scalar:
    square = run.number(0.0)
    for x in column:
        square = square.mac(x, x)
    return square.apply(math.sqrt)


def qr(run: Run) -> list[Array]:
    """Q from the reflections applied to columns of the identity."""
    m, n = run.x.shape[-2:]
    k = run.attributes.shapes[0][-1]
    q: dict[Index, Scalar] = {}
    r: dict[Index, Scalar] = {}
    for lead in places(run.x.shape[:-2]):
        columns = _columns(_matrix(run.x, lead))
        vectors: list[tuple[int, list[Scalar]]] = []
        two = run.number(2.0)
        for c in range(min(m - 1, n)):
            size = _norm(run, columns[c][c:])
            first = columns[c][c] + size
            vector = [x / first for x in columns[c][c:]]
            vectors.append((c, vector))
            behind = [column[c:] for column in columns[c + 1 :]]
            _reflect(vector, behind, two)
            for column, part in zip(columns[c + 1 :], behind, strict=True):
                column[c:] = part
        made = [[run.number(float(i == j)) for i in range(m)] for j in range(k)]
        for c, vector in reversed(vectors):
            parts = [column[c:] for column in made]
            _reflect(vector, parts, two)
            for column, part in zip(made, parts, strict=True):
                column[c:] = part
        q.update({(*lead, i, j): made[j][i] for i in range(m) for j in range(k)})
        r.update({(*lead, i, j): columns[j][i] for i in range(k) for j in range(n)})
    shapes = run.attributes.shapes
    return [Array(shapes[0], q), Array(shapes[1], r)]


def householder_product(run: Run) -> list[Array]:
    """The reflections of both inputs applied to the columns of a matrix."""
    m, n = run.x.shape[-2:]
    columns = _columns(_matrix(run.x, ()))
    for c in range(min(m - 1, run.inputs[1].shape[-1])):
        vector = [run.x[(i, c)] for i in range(c, m)]
        parts = [column[c:] for column in columns]
        _reflect(vector, parts, run.inputs[1][(c,)])
        for column, part in zip(columns, parts, strict=True):
            column[c:] = part
    return [Array(run.x.shape, {(i, j): columns[j][i] for i in range(m) for j in range(n)})]


BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    "lu": _each(lu),
    "solve": _each(solve),
    "lu_solve": _each(lu_solve),
    "inverse": _each(inverse),
    "triangular_solve": _each(triangular_solve),
    "cholesky": _each(cholesky),
    "cholesky_solve": _each(cholesky_solve),
    "det": det,
    "slogdet": slogdet,
    "qr": qr,
    "householder_product": householder_product,
}

CASES: list[Case] = [
    Case("lu", declared((4, 4)), ((4, 4),)),
    Case("lu", declared((2, 3, 5)), ((2, 3, 5),), "wide"),
    Case("lu", declared((5, 3)), ((5, 3),), "tall"),
    Case("det", None, ((3, 3),)),
    Case("det", None, ((2, 2, 4, 4),), "several"),
    Case("slogdet", declared((2,), (2,)), ((2, 4, 4),)),
    Case("inverse", declared((2, 3, 3)), ((2, 3, 3),)),
    Case("solve", declared((4, 3)), ((4, 4), (4, 3))),
    Case("lu_solve", declared((4, 2)), ((4, 4), (4, 2))),
    Case("triangular_solve", declared((2, 4, 3)), ((2, 4, 4), (2, 4, 3))),
    Case("cholesky", declared((2, 4, 4)), ((2, 4, 4),)),
    Case("cholesky_solve", declared((4, 3)), ((4, 4), (4, 3))),
    Case("qr", declared((5, 3), (3, 3)), ((5, 3),)),
    Case("qr", declared((4, 4), (4, 4)), ((4, 4),), "square"),
    Case("householder_product", declared((5, 3)), ((5, 3), (3,))),
]  # fmt: skip
