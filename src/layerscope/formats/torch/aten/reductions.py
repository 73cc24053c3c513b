"""Sums, means, extremes, norms."""

from __future__ import annotations

from typing import Any

from layerscope.formats.torch.dtypes import INEXACT, name_of
from layerscope.formats.torch.lowering import Lowering, TensorRef, axis
from layerscope.graph import attributes as at
from layerscope.graph.types import Source, elements


def _axes(dim: Any) -> tuple[int, ...]:
    if dim is None or dim == []:
        return ()
    return (dim,) if isinstance(dim, int) else tuple(dim)


def _reduced(d: Lowering, op: str, x: TensorRef, dim: Any, keep: bool) -> TensorRef:
    if not x.rank:
        return d.add("identity", x)
    return d.add(op, x, at=at.Reduce(_axes(dim), keep))


def reduction(op: str) -> Any:
    def translate(
        d: Lowering, self: TensorRef, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
    ) -> TensorRef:
        x = self if dtype is None else d.cast(self, name_of(dtype))
        if (
            op in ("reduce_sum", "reduce_prod")
            and dtype is None
            and not x.dtype.startswith(INEXACT)
        ):
            x = d.cast(x, "int64")
        return _reduced(d, op, x, dim, bool(keepdim))

    return translate


def _extreme(op: str, place: str, two: str) -> Any:
    def translate(d: Lowering, self: TensorRef, dim: Any = None, keepdim: bool = False) -> Any:
        """Of one tensor, along an axis with the place of it, or of two element by element."""
        if isinstance(dim, TensorRef):
            return d.add(two, self, dim)
        if dim is None:
            return _reduced(d, op, self, None, False)
        return [_reduced(d, op, self, dim, keepdim), _reduced(d, place, self, dim, keepdim)]

    return translate


def _spread(op: str) -> Any:
    def translate(
        d: Lowering, self: TensorRef, dim: Any = None, *told: Any, **more: Any
    ) -> TensorRef:
        if isinstance(dim, bool):
            return _reduced(d, op, self, None, False)
        keep = bool(more.get("keepdim", False))
        if told and isinstance(told[-1], bool) and len(told) > 1:
            keep = told[-1]
        return _reduced(d, op, self, dim, keep)

    return translate


def var_mean(
    d: Lowering, self: TensorRef, dim: Any = None, *told: Any, **more: Any
) -> list[TensorRef]:
    keep = bool(more.get("keepdim", False)) or (len(told) > 1 and told[-1] is True)
    if isinstance(dim, bool):
        dim = None
    return [_reduced(d, "reduce_var", self, dim, keep), _reduced(d, "reduce_mean", self, dim, keep)]


def std_mean(
    d: Lowering, self: TensorRef, dim: Any = None, *told: Any, **more: Any
) -> list[TensorRef]:
    variance, mean = var_mean(d, self, dim, *told, **more)
    return [d.add("sqrt", variance), mean]


def aminmax(
    d: Lowering, self: TensorRef, *, dim: Any = None, keepdim: bool = False
) -> list[TensorRef]:
    return [_reduced(d, op, self, dim, keepdim) for op in ("reduce_min", "reduce_max")]


def nansum(
    d: Lowering, self: TensorRef, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> TensorRef:
    """What is no number counts as nought."""
    x = self
    if x.dtype.startswith(INEXACT):
        zero = d.add("constant", at=at.DeclaredOutputs(((),), (x.dtype,)))
        x = d.add("where", d.add("is_nan", x), zero, x)
    made: TensorRef = reduction("reduce_sum")(d, x, dim, keepdim, dtype=dtype)
    return made


def dist(d: Lowering, self: TensorRef, other: TensorRef, p: Any = 2) -> TensorRef:
    return vector_norm(d, d.add("sub", self, other), p)


def trace(d: Lowering, self: TensorRef) -> TensorRef:
    """The diagonal, a view, added up."""
    diagonal = d.add("view", self, at=at.DeclaredOutputs(((min(self.shape),),), (self.dtype,)))
    made: TensorRef = reduction("reduce_sum")(d, diagonal)
    return made


def renorm(d: Lowering, self: TensorRef, p: Any, dim: int, maxnorm: Any) -> TensorRef:
    """Every slice brought to a norm of at most maxnorm."""
    others = [n for n in range(self.rank) if n != dim % self.rank]
    norms = vector_norm(d, self, p, others, True)
    scale = d.add("div", d.add("add", norms))
    one = d.add("constant", at=at.DeclaredOutputs(((),), (self.dtype,)))
    return d.add("mul", self, d.add("where", d.add("compare", norms), scale, one))


def kth_value(
    d: Lowering, self: TensorRef, k: int, dim: int = -1, keepdim: bool = False
) -> list[TensorRef]:
    """The last of the k smallest, which are found as the k largest are."""
    if not self.rank:
        return [
            d.add("identity", self),
            d.add("constant", at=at.DeclaredOutputs(((),), ("int64",))),
        ]
    along = axis(dim, self.rank)
    best = d.several("top_k", self, at=at.TopK(k, along))
    cut = at.Slice((along,), (k - 1,), (k,), (1,))
    last = [d.add("slice", each, at=cut) for each in best]
    if keepdim:
        return last
    shape = (*self.shape[:along], *self.shape[along + 1 :])
    return [d.add("reshape", each, at=at.Reshape(shape)) for each in last]


def median(d: Lowering, self: TensorRef, dim: Any = None, keepdim: bool = False) -> Any:
    """The k-th smallest with k half of all, rounded up."""
    if dim is None:
        d.source = Source(op=f"{d.source.op}.all")
        flat = d.add("reshape", self, at=at.Reshape((elements(self.shape),)))
        return kth_value(d, flat, (elements(self.shape) + 1) // 2)[0]
    size = self.shape[dim] if self.rank else 1
    return kth_value(d, self, (size + 1) // 2, dim, keepdim)


def mode(d: Lowering, self: TensorRef, dim: int = -1, keepdim: bool = False) -> list[TensorRef]:
    """A row in order, neighbours compared, and the longest run of equal ones."""
    if not self.rank:
        return kth_value(d, self, 1, dim, keepdim)
    values, places = sort(d, self, dim)
    runs = _reduced(d, "arg_max", d.cast(d.add("compare", values), "int64"), dim, True)
    made = [d.add("gather", each, runs, at=at.Gather(axis(dim, self.rank), elements=True))
            for each in (values, places)]  # fmt: skip
    if keepdim:
        return made
    along = axis(dim, self.rank)
    shape = (*self.shape[:along], *self.shape[along + 1 :])
    return [d.add("reshape", each, at=at.Reshape(shape)) for each in made]


def running_extreme(op: str) -> Any:
    def translate(d: Lowering, self: TensorRef, dim: int) -> list[TensorRef]:
        if not self.rank:
            return kth_value(d, self, 1, dim)
        return list(d.several(op, self, at=at.CumSum(dim)))

    return translate


def running_log_sum_exp(d: Lowering, self: TensorRef, dim: int) -> TensorRef:
    """Of numbers less the largest so far: exponentials, their running sum, its logarithm."""
    if not self.rank:
        return d.add("identity", self)
    best = d.several("cum_max", self, at=at.CumSum(dim))[0]
    sums = d.add("cum_sum", d.add("exp", d.add("sub", self, best)), at=at.CumSum(dim))
    return d.add("add", d.add("log", sums), best)


def vector_norm(
    d: Lowering,
    self: TensorRef,
    ord: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> TensorRef:
    x = self if dtype is None else d.cast(self, name_of(dtype))
    ops = {2: "reduce_l2", 1: "reduce_l1"}
    if ord in (float("inf"), float("-inf")):
        op = "reduce_max" if ord > 0 else "reduce_min"
        return _reduced(d, op, d.add("abs", x), dim, keepdim)
    if ord not in ops:
        powers = d.add("pow", x)
        return d.add("pow", _reduced(d, "reduce_sum", powers, dim, keepdim))
    return _reduced(d, ops[ord], x, dim, keepdim)


def norm(d: Lowering, self: TensorRef, p: Any = 2, *told: Any, **named: Any) -> TensorRef:
    return vector_norm(d, self, 2 if p is None else p, *told, **named)


def running(op: str) -> Any:
    def translate(d: Lowering, self: TensorRef, dim: int, *, dtype: Any = None) -> TensorRef:
        kind = name_of(dtype) if dtype is not None else self.dtype
        if dtype is None and not kind.startswith(INEXACT):
            kind = "int64"
        x = d.cast(self, kind)
        return d.add(op, x, at=at.CumSum(dim)) if x.rank else x

    return translate


def topk(d: Lowering, self: TensorRef, k: int, dim: int = -1, *_: Any) -> list[TensorRef]:
    return list(d.several("top_k", self, at=at.TopK(k, dim)))


def sort(
    d: Lowering, self: TensorRef, *told: Any, dim: int | None = None, **_: Any
) -> list[TensorRef]:
    """All of a row in order: as the k largest with k the length of the row."""
    places = [each for each in told if isinstance(each, int) and not isinstance(each, bool)]
    told_axis = dim if dim is not None else places[0] if places else -1
    along = axis(told_axis, self.rank) if self.rank else 0
    return list(d.several("top_k", self, at=at.TopK(self.shape[along], along)))


def argsort(d: Lowering, self: TensorRef, *told: Any, **more: Any) -> TensorRef:
    return sort(d, self, *told, **more)[1]


def average(
    d: Lowering, self: TensorRef, dim: Any = None, keepdim: bool = False, **more: Any
) -> TensorRef:
    """A mean over all positions of an image is global pooling where PyTorch has none of its own."""
    result: TensorRef = reduction("reduce_mean")(d, self, dim, keepdim, **more)
    return result


def cosine_similarity(
    d: Lowering, x1: TensorRef, x2: TensorRef, dim: int = 1, eps: float = 1e-8
) -> TensorRef:
    """The sum of products, by the product of both norms kept from zero."""
    dots = _reduced(d, "reduce_sum", d.add("mul", x1, x2), dim, False)
    norms = d.add(
        "mul", _reduced(d, "reduce_l2", x1, dim, False), _reduced(d, "reduce_l2", x2, dim, False)
    )
    return d.add("div", dots, d.add("max", norms))


def count_nonzero(d: Lowering, self: TensorRef, dim: Any = None) -> TensorRef:
    found = d.cast(d.add("compare", self), "int64")
    return _reduced(d, "reduce_sum", found, dim, False)


def histc(d: Lowering, self: TensorRef, bins: int = 100, *_: Any, **__: Any) -> TensorRef:
    """Every element found its bin, and counted there."""
    size = elements(self.shape)
    told = at.CustomCost(((bins,),), (self.dtype,), add=size, mul=size)
    return d.add("custom", self, at=told)


TABLE: dict[str, Any] = {
    "sum": reduction("reduce_sum"),
    "mean": average,
    "prod": reduction("reduce_prod"),
    "amax": reduction("reduce_max"),
    "amin": reduction("reduce_min"),
    "any": reduction("reduce_any"),
    "all": reduction("reduce_all"),
    "logsumexp": reduction("reduce_log_sum_exp"),
    "argmax": reduction("arg_max"),
    "argmin": reduction("arg_min"),
    "max": _extreme("reduce_max", "arg_max", "max"),
    "min": _extreme("reduce_min", "arg_min", "min"),
    "var": _spread("reduce_var"),
    "std": _spread("reduce_std"),
    "var_mean": var_mean,
    "std_mean": std_mean,
    "aminmax": aminmax,
    "nansum": nansum,
    "dist": dist,
    "trace": trace,
    "renorm": renorm,
    "kthvalue": kth_value,
    "median": median,
    "nanmedian": median,
    "mode": mode,
    "cummax": running_extreme("cum_max"),
    "cummin": running_extreme("cum_min"),
    "logcumsumexp": running_log_sum_exp,
    "linalg_vector_norm": vector_norm,
    "norm": norm,
    "cumsum": running("cum_sum"),
    "cumprod": running("cum_prod"),
    "histc": histc,
    "topk": topk,
    "sort": sort,
    "argsort": argsort,
    "count_nonzero": count_nonzero,
    "cosine_similarity": cosine_similarity,
}
