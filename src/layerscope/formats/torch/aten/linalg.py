"""Linear algebra: determinants, solvers and what uses factorizations."""

from __future__ import annotations

from layerscope.formats.torch.aten.control import constant, scalar_constant
from layerscope.formats.torch.aten.layout import transpose
from layerscope.formats.torch.aten.signatures import Converter
from layerscope.formats.torch.draft import Draft, NoWords, Ref
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape
from layerscope.ops.spec import broadcast


def _outputs(*shapes: Shape, dtype: str) -> at.DeclaredOutputs:
    return at.DeclaredOutputs(shapes, (dtype,) * len(shapes))


def _solution_shape(matrix: Ref, right: Ref) -> Shape:
    """The shape of the solution for a right-hand side, batch axes broadcast."""
    return (*broadcast((matrix.shape[:-2], right.shape[:-2])), *right.shape[-2:])


def det(d: Draft, self: Ref) -> Ref:
    return d.add("det", self)


def lu_solve(d: Draft, lu: Ref, pivots: Ref, b: Ref, *, left: bool = True, **_: object) -> Ref:
    right = b if left else transpose(d, b, -2, -1)
    attrs = _outputs(_solution_shape(lu, right), dtype=b.dtype)
    x = d.add("lu_solve", lu, right, at=attrs)
    return x if left else transpose(d, x, -2, -1)


def ldl_solve(d: Draft, ld: Ref, pivots: Ref, b: Ref, **_: object) -> Ref:
    return d.add("lu_solve", ld, b, at=_outputs(_solution_shape(ld, b), dtype=b.dtype))


def cholesky_solve(d: Draft, self: Ref, input2: Ref, upper: bool = False) -> Ref:
    attrs = _outputs(_solution_shape(input2, self), dtype=self.dtype)
    return d.add("cholesky_solve", input2, self, at=attrs)


def cholesky_inverse(d: Draft, self: Ref, upper: bool = False) -> Ref:
    eye = constant(d, self.shape, self.dtype)
    return d.add("cholesky_solve", self, eye, at=_outputs(self.shape, dtype=self.dtype))


def triangular_solve(d: Draft, self: Ref, a: Ref, *_: object, **__: object) -> list[Ref]:
    attrs = _outputs(_solution_shape(a, self), dtype=self.dtype)
    x = d.add("triangular_solve", a, self, at=attrs)
    return [x, d.add("identity", a)]


def lu_unpack(
    d: Draft,
    lu_data: Ref,
    lu_pivots: Ref,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> list[Ref]:
    """The permutation as a matrix, and both triangles cut to their sizes."""
    *batch, m, n = lu_data.shape
    if not (unpack_data and unpack_pivots):
        raise NoWords("only a part of a factorization unpacked")
    least = min(m, n)
    permutation = d.add("one_hot", lu_pivots, at=at.OneHot(m, -1, lu_data.dtype))
    square = (*batch, m, m)
    if permutation.shape != square:
        permutation = constant(d, square, lu_data.dtype)
    triangles = []
    for rows, columns in ((m, least), (least, n)):
        cut = at.Slice((-2, -1), (0, 0), (rows, columns), (1, 1))
        part = lu_data if (rows, columns) == (m, n) else d.add("slice", lu_data, at=cut)
        triangles.append(d.add("trilu", part))
    return [permutation, *triangles]


def pinv(d: Draft, self: Ref, *_: object, **__: object) -> Ref:
    """V · S⁻¹ · Uᵀ by a singular value decomposition, small singular values left out."""
    *batch, m, n = self.shape
    k = min(m, n)
    attrs = _outputs((*batch, m, k), (*batch, k), (*batch, k, n), dtype=self.dtype)
    u, s, v = d.several("svd", self, at=attrs)
    small, inverse = d.add("compare", s), d.add("reciprocal", s)
    kept = d.add("where", small, inverse, scalar_constant(d, s.dtype))
    scales = d.add("reshape", kept, at=at.Reshape((*batch, 1, k)))
    right = d.add("mul", transpose(d, v, -2, -1), scales)
    return d.add("matmul", right, transpose(d, u, -2, -1))


def ormqr(d: Draft, self: Ref, input2: Ref, input3: Ref, *_: object, **__: object) -> Ref:
    """Householder reflections applied to the columns of a matrix."""
    attrs = _outputs(input3.shape, dtype=self.dtype)
    return d.add("householder_product", input3, input2, at=attrs)


TABLE: dict[str, Converter] = {
    "linalg_det": det,
    "det": det,
    "linalg_lu_solve": lu_solve,
    "linalg_ldl_solve": ldl_solve,
    "cholesky_solve": cholesky_solve,
    "cholesky_inverse": cholesky_inverse,
    "triangular_solve": triangular_solve,
    "lu_unpack": lu_unpack,
    "linalg_pinv": pinv,
    "ormqr": ormqr,
}
