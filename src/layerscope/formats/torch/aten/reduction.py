"""Sums, means, variances, extremes and norms along axes."""

from __future__ import annotations

from layerscope.formats.torch.aten.control import scalar_constant
from layerscope.formats.torch.aten.signatures import Converter, Dims, DType, OneOutput, Scalar
from layerscope.formats.torch.dtypes import INEXACT, name_of
from layerscope.formats.torch.lowering import Lowering, TensorRef
from layerscope.graph import attributes as at
from layerscope.ops.reduction import OUT_DTYPES

INFINITIES = (float("inf"), float("-inf"))


def reduce_axes(d: Lowering, op: str, x: TensorRef, dim: Dims, keepdim: bool) -> TensorRef:
    """A reduction of the axes, or of all; for a tensor of rank 0 at most a cast."""
    if not x.rank:
        dtype = str(OUT_DTYPES.get(op, x.dtype))
        return d.add("identity", x) if dtype == x.dtype else d.cast(x, dtype)
    if dim is None or dim == []:
        axes: tuple[int, ...] = ()
    else:
        axes = (dim,) if isinstance(dim, int) else tuple(dim)
    return d.add(op, x, at=at.Reduce(axes, keepdim))


def reduction(op: str) -> OneOutput:
    """A converter to `op`; sums and products of integers are computed as int64."""

    def convert(
        d: Lowering,
        self: TensorRef,
        dim: Dims = None,
        keepdim: bool = False,
        *,
        dtype: DType = None,
    ) -> TensorRef:
        x = self if dtype is None else d.cast(self, name_of(dtype))
        if (
            op in ("reduce_sum", "reduce_prod")
            and dtype is None
            and not x.dtype.startswith(INEXACT)
        ):
            x = d.cast(x, "int64")
        return reduce_axes(d, op, x, dim, bool(keepdim))

    return convert


def extreme(reduce_op: str, index_op: str, binary_op: str) -> Converter:
    """A converter of `max` or `min`: of all elements, along an axis, or of two tensors."""

    def convert(
        d: Lowering, self: TensorRef, dim: int | TensorRef | None = None, keepdim: bool = False
    ) -> TensorRef | list[TensorRef]:
        if isinstance(dim, TensorRef):  # the overload max.other
            return d.add(binary_op, self, dim)
        if dim is None:
            return reduce_axes(d, reduce_op, self, None, False)
        return [reduce_axes(d, op, self, dim, keepdim) for op in (reduce_op, index_op)]

    return convert


def variance(op: str) -> OneOutput:
    """A converter of `var` or `std`.

    Positional options are unbiased, then keepdim; the first may stand instead of dim.
    """

    def convert(
        d: Lowering,
        self: TensorRef,
        dim: Dims = None,
        *options: object,
        keepdim: bool = False,
        **_: object,
    ) -> TensorRef:
        if isinstance(dim, bool):
            return reduce_axes(d, op, self, None, False)
        keep = bool(keepdim)
        if len(options) > 1 and isinstance(options[-1], bool):
            keep = options[-1]
        return reduce_axes(d, op, self, dim, keep)

    return convert


def var_mean(
    d: Lowering,
    self: TensorRef,
    dim: Dims = None,
    *options: object,
    keepdim: bool = False,
    **_: object,
) -> list[TensorRef]:
    keep = bool(keepdim) or (len(options) > 1 and options[-1] is True)
    axes = None if isinstance(dim, bool) else dim
    return [reduce_axes(d, op, self, axes, keep) for op in ("reduce_var", "reduce_mean")]


def std_mean(
    d: Lowering,
    self: TensorRef,
    dim: Dims = None,
    *options: object,
    keepdim: bool = False,
    **_: object,
) -> list[TensorRef]:
    var, mean = var_mean(d, self, dim, *options, keepdim=keepdim)
    return [d.add("sqrt", var), mean]


def aminmax(
    d: Lowering, self: TensorRef, *, dim: Dims = None, keepdim: bool = False
) -> list[TensorRef]:
    return [reduce_axes(d, op, self, dim, keepdim) for op in ("reduce_min", "reduce_max")]


def nansum(
    d: Lowering, self: TensorRef, dim: Dims = None, keepdim: bool = False, *, dtype: DType = None
) -> TensorRef:
    """NaN counts as zero."""
    x = self
    if x.dtype.startswith(INEXACT):
        zero = scalar_constant(d, x.dtype)
        x = d.add("where", d.add("is_nan", x), zero, x)
    return reduction("reduce_sum")(d, x, dim, keepdim, dtype=dtype)


def trace(d: Lowering, self: TensorRef) -> TensorRef:
    """The sum of the diagonal, which is a view."""
    diagonal = d.add("view", self, at=at.DeclaredOutputs(((min(self.shape),),), (self.dtype,)))
    return reduction("reduce_sum")(d, diagonal)


def count_nonzero(d: Lowering, self: TensorRef, dim: Dims = None) -> TensorRef:
    nonzero = d.cast(d.add("compare", self), "int64")
    return reduce_axes(d, "reduce_sum", nonzero, dim, False)


# Norms


def vector_norm(
    d: Lowering,
    self: TensorRef,
    ord: Scalar = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType = None,
) -> TensorRef:
    x = self if dtype is None else d.cast(self, name_of(dtype))
    if ord in INFINITIES:
        op = "reduce_max" if ord == INFINITIES[0] else "reduce_min"
        return reduce_axes(d, op, d.add("abs", x), dim, keepdim)
    if ord == 2:
        return reduce_axes(d, "reduce_l2", x, dim, keepdim)
    if ord == 1:
        return reduce_axes(d, "reduce_l1", x, dim, keepdim)
    powers = d.add("pow", x)
    return d.add("pow", reduce_axes(d, "reduce_sum", powers, dim, keepdim))


def norm(
    d: Lowering,
    self: TensorRef,
    p: Scalar | None = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType = None,
) -> TensorRef:
    return vector_norm(d, self, 2 if p is None else p, dim, keepdim, dtype=dtype)


def dist(d: Lowering, self: TensorRef, other: TensorRef, p: Scalar = 2) -> TensorRef:
    return vector_norm(d, d.add("sub", self, other), p)


def renorm(d: Lowering, self: TensorRef, p: Scalar, dim: int, maxnorm: Scalar) -> TensorRef:
    """Every slice scaled down to a norm of at most maxnorm."""
    others = [n for n in range(self.rank) if n != dim % self.rank]
    norms = vector_norm(d, self, p, others, True)
    scale = d.add("div", d.add("add", norms))
    one = scalar_constant(d, self.dtype)
    return d.add("mul", self, d.add("where", d.add("compare", norms), scale, one))


def weight_norm(d: Lowering, v: TensorRef, g: TensorRef, dim: int = 0) -> list[TensorRef]:
    """V · g / |v|, one norm for each slice."""
    axes = tuple([n for n in range(v.rank) if n != dim])
    norms = d.add("reduce_l2", v, at=at.Reduce(axes, keep=True))
    return [d.add("mul", v, d.add("div", g, norms)), norms]


def cosine_similarity(
    d: Lowering, x1: TensorRef, x2: TensorRef, dim: int = 1, eps: float = 1e-8
) -> TensorRef:
    """The sum of products divided by the product of both norms, which is at least eps."""
    dots = reduce_axes(d, "reduce_sum", d.add("mul", x1, x2), dim, False)
    norms = d.add("mul", *[reduce_axes(d, "reduce_l2", x, dim, False) for x in (x1, x2)])
    return d.add("div", dots, d.add("max", norms))


MEAN = reduction("reduce_mean")

TABLE: dict[str, Converter] = {
    "sum": reduction("reduce_sum"),
    "mean": MEAN,
    "prod": reduction("reduce_prod"),
    "amax": reduction("reduce_max"),
    "amin": reduction("reduce_min"),
    "any": reduction("reduce_any"),
    "all": reduction("reduce_all"),
    "_is_any_true": reduction("reduce_any"),  # checks of torch.distributions call these two
    "_is_all_true": reduction("reduce_all"),
    "logsumexp": reduction("reduce_log_sum_exp"),
    "argmax": reduction("arg_max"),
    "argmin": reduction("arg_min"),
    "max": extreme("reduce_max", "arg_max", "max"),
    "min": extreme("reduce_min", "arg_min", "min"),
    "var": variance("reduce_var"),
    "std": variance("reduce_std"),
    "var_mean": var_mean,
    "std_mean": std_mean,
    "aminmax": aminmax,
    "nansum": nansum,
    "trace": trace,
    "count_nonzero": count_nonzero,
    "linalg_vector_norm": vector_norm,
    "norm": norm,
    "dist": dist,
    "renorm": renorm,
    "_weight_norm_interface": weight_norm,
    "cosine_similarity": cosine_similarity,
}
