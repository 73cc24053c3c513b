"""Linear algebra: products of other forms, distances, factorizations and their solutions."""

from __future__ import annotations

from typing import Any

from layerscope.formats.torch.aten.shaping import permute, transpose
from layerscope.formats.torch.dtypes import name_of
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported, same_dtypes
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape
from layerscope.ops.spec import broadcast

MM_ROWS = 25  # more rows than this, and PyTorch finds Euclidean distances by a matrix product


def _told(*made: Shape, dtype: str) -> at.DeclaredOutputs:
    return at.DeclaredOutputs(made, (dtype,) * len(made))


def _joined(d: Lowering, self: TensorRef, made: TensorRef, beta: Any, alpha: Any) -> TensorRef:
    """Beta · self + alpha · made"""
    if alpha != 1:
        made = d.add("mul", made)
    if beta == 0:
        return made
    return d.add("add", made, self if beta == 1 else d.add("mul", self))


def addbmm(
    d: Lowering,
    self: TensorRef,
    batch1: TensorRef,
    batch2: TensorRef,
    *,
    beta: Any = 1,
    alpha: Any = 1,
) -> TensorRef:
    made = d.add("einsum", batch1, batch2, at=at.Einsum("bij,bjk->ik"))
    return _joined(d, self, made, beta, alpha)


def addr(
    d: Lowering, self: TensorRef, vec1: TensorRef, vec2: TensorRef, *, beta: Any = 1, alpha: Any = 1
) -> TensorRef:
    made = d.add("einsum", vec1, vec2, at=at.Einsum("i,j->ij"))
    return _joined(d, self, made, beta, alpha)


def scaled_mm(
    d: Lowering,
    self: TensorRef,
    mat2: TensorRef,
    scale_a: Any = None,
    scale_b: Any = None,
    bias: TensorRef | None = None,
    scale_result: Any = None,
    out_dtype: Any = None,
    *_: Any,
) -> TensorRef:
    """A product of narrow numbers, then a scale of each side, and a bias."""
    made = d.add("matmul", self, mat2)
    if out_dtype is not None:
        made = d.cast(made, name_of(out_dtype))
    for scale in (scale_a, scale_b):
        if isinstance(scale, TensorRef):
            made = d.add("mul", made, scale)
    return made if bias is None else d.add("add", made, bias)


def cross(d: Lowering, self: TensorRef, other: TensorRef, *, dim: int = -1) -> TensorRef:
    """Of three numbers each, two products and their difference."""
    return d.add("sub", d.add("mul", self, other), d.add("mul", self, other))


def cdist(
    d: Lowering, x1: TensorRef, x2: TensorRef, p: float = 2.0, compute_mode: int | None = None
) -> TensorRef:
    by_product = compute_mode == 1 or (
        compute_mode in (None, 0) and max(x1.shape[-2], x2.shape[-2]) > MM_ROWS
    )
    if p == 2 and by_product:
        return euclidean_dist(d, x1, x2)
    return d.add("cdist", x1, x2, at=at.Distance(float(p)))


def euclidean_dist(d: Lowering, x1: TensorRef, x2: TensorRef) -> TensorRef:
    """√(|x|² − 2·x·y + |y|²) as one product: (−2x, |x|², 1) by (y, 1, |y|²)."""
    sides = []
    for n, x in enumerate((x1, x2)):
        norms = d.add("reduce_sum", d.add("square", x), at=at.Reduce((-1,), keep=True))
        ones = d.add("constant", at=at.DeclaredOutputs((norms.shape,), (x.dtype,)))
        parts = [x, ones, norms] if n else [d.add("mul", x), norms, ones]
        sides.append(d.concat(parts, x.rank - 1))
    made = d.add("matmul", sides[0], transpose(d, sides[1], -2, -1))
    return d.add("sqrt", d.add("max", made))


def pdist(d: Lowering, self: TensorRef, p: float = 2.0) -> TensorRef:
    return d.add("cdist", self, at=at.Distance(float(p)))


def det(d: Lowering, self: TensorRef) -> TensorRef:
    return d.add("det", self)


def lu_solve(
    d: Lowering, lu: TensorRef, pivots: TensorRef, b: TensorRef, *, left: bool = True, **_: Any
) -> TensorRef:
    x = b if left else transpose(d, b, -2, -1)
    made = d.add("lu_solve", lu, x, at=_told(_broadcast(lu, x), dtype=b.dtype))
    return made if left else transpose(d, made, -2, -1)


def ldl_solve(d: Lowering, ld: TensorRef, pivots: TensorRef, b: TensorRef, **_: Any) -> TensorRef:
    return d.add("lu_solve", ld, b, at=_told(_broadcast(ld, b), dtype=b.dtype))


def cholesky_solve(
    d: Lowering, self: TensorRef, input2: TensorRef, upper: bool = False
) -> TensorRef:
    return d.add(
        "cholesky_solve", input2, self, at=_told(_broadcast(input2, self), dtype=self.dtype)
    )


def cholesky_inverse(d: Lowering, self: TensorRef, upper: bool = False) -> TensorRef:
    eye = d.add("constant", at=at.DeclaredOutputs((self.shape,), (self.dtype,)))
    return d.add("cholesky_solve", self, eye, at=_told(self.shape, dtype=self.dtype))


def triangular_solve(
    d: Lowering, self: TensorRef, a: TensorRef, *_: Any, **__: Any
) -> list[TensorRef]:
    shape = _broadcast(a, self)
    made = d.add("triangular_solve", a, self, at=_told(shape, dtype=self.dtype))
    return [made, d.add("identity", a)]


def _broadcast(left: TensorRef, right: TensorRef) -> Shape:
    return (*broadcast((left.shape[:-2], right.shape[:-2])), *right.shape[-2:])


def lu_unpack(
    d: Lowering,
    lu_data: TensorRef,
    lu_pivots: TensorRef,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> list[TensorRef]:
    """Both triangles, cut to their sizes, and the permutation as a matrix."""
    *batch, m, n = lu_data.shape
    if not (unpack_data and unpack_pivots):
        raise Unsupported("a part of a factorization")
    least = min(m, n)
    whole = d.add("one_hot", lu_pivots, at=at.OneHot(m, -1, lu_data.dtype))
    turned = at.DeclaredOutputs(((*batch, m, m),), (lu_data.dtype,))
    ways = whole if whole.shape == turned.shapes[0] else d.add("constant", at=turned)
    parts = []
    for rows, columns in ((m, least), (least, n)):
        cut = at.Slice((-2, -1), (0, 0), (rows, columns), (1, 1))
        part = lu_data if (rows, columns) == (m, n) else d.add("slice", lu_data, at=cut)
        parts.append(d.add("trilu", part))
    return [ways, *parts]


def pinv(d: Lowering, self: TensorRef, *_: Any, **__: Any) -> TensorRef:
    """By the singular value decomposition: V · S⁻¹ · Uᵀ, small values left out."""
    *batch, m, n = self.shape
    k = min(m, n)
    told = _told((*batch, m, k), (*batch, k), (*batch, k, n), dtype=self.dtype)
    u, s, v = d.several("svd", self, at=told)
    kept = d.add("where", d.add("compare", s), d.add("reciprocal", s), _zero(d, s.dtype))
    scales = d.add("reshape", kept, at=at.Reshape((*batch, 1, k)))
    right = d.add("mul", transpose(d, v, -2, -1), scales)
    return d.add("matmul", right, transpose(d, u, -2, -1))


def _zero(d: Lowering, dtype: str) -> TensorRef:
    return d.add("constant", at=at.DeclaredOutputs(((),), (dtype,)))


def ormqr(
    d: Lowering, self: TensorRef, input2: TensorRef, input3: TensorRef, *_: Any, **__: Any
) -> TensorRef:
    """Reflections applied to the columns of a matrix."""
    return d.add("householder_product", input3, input2, at=_told(input3.shape, dtype=self.dtype))


def conv_tbc(
    d: Lowering, self: TensorRef, weight: TensorRef, bias: TensorRef, pad: int = 0
) -> TensorRef:
    """Of T x N x C: a convolution along the first axis."""
    x = permute(d, self, (1, 2, 0))
    kernel = permute(d, weight, (2, 1, 0))
    window = at.Window((weight.shape[0],), (1,), ((pad, pad),), (1,))
    told = at.Conv(window, weight.shape[2], 1, True)
    return permute(d, d.add("conv", x, kernel, bias, at=told), (2, 0, 1))


def weight_norm(d: Lowering, v: TensorRef, g: TensorRef, dim: int = 0) -> list[TensorRef]:
    """V · g / |v|, a norm for every slice."""
    axes = tuple([n for n in range(v.rank) if n != dim])
    norms = d.add("reduce_l2", v, at=at.Reduce(axes, keep=True))
    return [d.add("mul", v, d.add("div", g, norms)), norms]


TABLE: dict[str, Any] = {
    "addbmm": same_dtypes(addbmm),
    "addr": same_dtypes(addr),
    "_scaled_mm": scaled_mm,
    "linalg_cross": cross,
    "cdist": cdist,
    "_cdist_forward": cdist,
    "_euclidean_dist": euclidean_dist,
    "_pdist_forward": pdist,
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
    "conv_tbc": conv_tbc,
    "_weight_norm_interface": weight_norm,
}
