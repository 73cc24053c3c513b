"""Linear algebra: determinants, solvers and what uses factorizations."""

from __future__ import annotations

from layerscope.formats.torch.aten.control import constant, scalar_constant
from layerscope.formats.torch.aten.layout import transpose
from layerscope.formats.torch.aten.signatures import Converter
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape
from layerscope.ops.spec import broadcast


def _outputs(*shapes: Shape, dtype: str) -> at.DeclaredOutputs:
    return at.DeclaredOutputs(shapes, (dtype,) * len(shapes))


def _solution_shape(matrix: TensorRef, right: TensorRef) -> Shape:
    """The shape of the solution for a right-hand side, batch axes broadcast."""
    return (*broadcast((matrix.shape[:-2], right.shape[:-2])), *right.shape[-2:])


def det(d: Lowering, self: TensorRef) -> TensorRef:
    return d.add("det", self)


def lu_solve(
    d: Lowering, lu: TensorRef, pivots: TensorRef, b: TensorRef, *, left: bool = True, **_: object
) -> TensorRef:
    right = b if left else transpose(d, b, -2, -1)
    attrs = _outputs(_solution_shape(lu, right), dtype=b.dtype)
    x = d.add("lu_solve", lu, right, at=attrs)
    return x if left else transpose(d, x, -2, -1)


def ldl_solve(
    d: Lowering, ld: TensorRef, pivots: TensorRef, b: TensorRef, **_: object
) -> TensorRef:
    return d.add("lu_solve", ld, b, at=_outputs(_solution_shape(ld, b), dtype=b.dtype))


def cholesky_solve(
    d: Lowering, self: TensorRef, input2: TensorRef, upper: bool = False
) -> TensorRef:
    attrs = _outputs(_solution_shape(input2, self), dtype=self.dtype)
    return d.add("cholesky_solve", input2, self, at=attrs)


def cholesky_inverse(d: Lowering, self: TensorRef, upper: bool = False) -> TensorRef:
    eye = constant(d, self.shape, self.dtype)
    return d.add("cholesky_solve", self, eye, at=_outputs(self.shape, dtype=self.dtype))


def triangular_solve(
    d: Lowering, self: TensorRef, a: TensorRef, *_: object, **__: object
) -> list[TensorRef]:
    attrs = _outputs(_solution_shape(a, self), dtype=self.dtype)
    x = d.add("triangular_solve", a, self, at=attrs)
    return [x, d.add("identity", a)]


def lu_unpack(
    d: Lowering,
    lu_data: TensorRef,
    lu_pivots: TensorRef,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> list[TensorRef]:
    """The permutation as a matrix, and both triangles cut to their sizes."""
    *batch, m, n = lu_data.shape
    if not (unpack_data and unpack_pivots):
        raise Unsupported("only a part of a factorization unpacked")
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


def pinv(d: Lowering, self: TensorRef, *_: object, **__: object) -> TensorRef:
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


def ormqr(
    d: Lowering, self: TensorRef, input2: TensorRef, input3: TensorRef, *_: object, **__: object
) -> TensorRef:
    """Householder reflections applied to the columns of a matrix."""
    attrs = _outputs(input3.shape, dtype=self.dtype)
    return d.add("householder_product", input3, input2, at=attrs)


TABLE: dict[str, Converter] = {
    "linalg_det": det,
    "_linalg_det": det,
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
