"""Sort, top-k, cumulative sums and extremes, sorted search, histograms and distances."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from layerscope.formats.torch.aten.control import constant
from layerscope.formats.torch.aten.indexing import require_index
from layerscope.formats.torch.aten.layout import reshape
from layerscope.formats.torch.aten.linear import euclidean_dist
from layerscope.formats.torch.aten.reduction import reduce_axes
from layerscope.formats.torch.aten.signatures import Converter, DType, OneOutput, Operand, takes
from layerscope.formats.torch.dtypes import INEXACT, name_of
from layerscope.formats.torch.lowering import Lowering, TensorRef, axis
from layerscope.graph import attributes as at
from layerscope.graph.types import Source, elements

MM_ROWS = 25  # more rows than this, and PyTorch computes Euclidean distances by a matrix product
BAG_MODES: tuple[Literal["sum", "mean", "max"], ...] = ("sum", "mean", "max")

# Order statistics


def topk(d: Lowering, self: TensorRef, k: int, dim: int = -1, *_: object) -> list[TensorRef]:
    return list(d.several("top_k", self, at=at.TopK(k, dim)))


def sort(
    d: Lowering, self: TensorRef, *options: object, dim: int | None = None, **_: object
) -> list[TensorRef]:
    """A `top_k` with k the size of the axis.

    Positional options are dim and descending; the overload `stable` has stable in front of them.
    """
    ints = [each for each in options if isinstance(each, int) and not isinstance(each, bool)]
    chosen = dim if dim is not None else ints[0] if ints else -1
    along = axis(chosen, self.rank) if self.rank else 0
    return list(d.several("top_k", self, at=at.TopK(self.shape[along], along)))


def argsort(
    d: Lowering, self: TensorRef, *options: object, dim: int | None = None, **_: object
) -> TensorRef:
    return sort(d, self, *options, dim=dim)[1]


def kthvalue(
    d: Lowering, self: TensorRef, k: int, dim: int = -1, keepdim: bool = False
) -> list[TensorRef]:
    """The last of the k smallest values and its index."""
    if not self.rank:
        return [d.add("identity", self), constant(d, (), "int64")]
    along = axis(dim, self.rank)
    smallest = d.several("top_k", self, at=at.TopK(k, along))
    last = at.Slice((along,), (k - 1,), (k,), (1,))
    outputs = [d.add("slice", each, at=last) for each in smallest]
    return outputs if keepdim else _drop_axis(d, outputs, self, along)


def _drop_axis(d: Lowering, outputs: list[TensorRef], x: TensorRef, axis: int) -> list[TensorRef]:
    """Outputs without the axis along which `x` was reduced to size 1."""
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return [d.add("reshape", each, at=at.Reshape(shape)) for each in outputs]


def median(
    d: Lowering, self: TensorRef, dim: int | None = None, keepdim: bool = False
) -> TensorRef | list[TensorRef]:
    """The k-th smallest value, k half of all rounded up."""
    if dim is None:
        d.source = Source(op=f"{d.source.op}.all")
        flat = d.add("reshape", self, at=at.Reshape((elements(self.shape),)))
        return kthvalue(d, flat, (elements(self.shape) + 1) // 2)[0]
    size = self.shape[dim] if self.rank else 1
    return kthvalue(d, self, (size + 1) // 2, dim, keepdim)


def mode(d: Lowering, self: TensorRef, dim: int = -1, keepdim: bool = False) -> list[TensorRef]:
    """Sorted values are compared with their neighbours; the longest run of equal ones wins."""
    if not self.rank:
        return kthvalue(d, self, 1, dim, keepdim)
    values, indices = sort(d, self, dim)
    runs = reduce_axes(d, "arg_max", d.cast(d.add("compare", values), "int64"), dim, True)
    along = axis(dim, self.rank)
    attrs = at.Gather(along, elements=True)
    outputs = [d.add("gather", each, runs, at=attrs) for each in (values, indices)]
    return outputs if keepdim else _drop_axis(d, outputs, self, along)


def isin(d: Lowering, elements_: Operand, test_elements: Operand, **_: object) -> TensorRef:
    """Every element compared with all test elements if these are few, else both are sorted."""
    if not isinstance(elements_, TensorRef) or not isinstance(test_elements, TensorRef):
        tensor = elements_ if isinstance(elements_, TensorRef) else test_elements
        return d.add("compare", *([tensor] if isinstance(tensor, TensorRef) else []))
    count, tests = elements(elements_.shape), elements(test_elements.shape)
    flat = reshape(d, test_elements, (tests,))
    if tests < 10 * count**0.145:
        column = reshape(d, elements_, (*elements_.shape, 1))
        return d.add("reduce_any", d.add("compare", column, flat), at=at.Reduce((-1,)))
    row = d.concat([reshape(d, elements_, (count,)), flat], 0)
    ordered, indices = d.several("top_k", row, at=at.TopK(count + tests, 0))
    equal = d.add("compare", ordered)
    found = d.add("gather", equal, indices, at=at.Gather(0))
    first = d.add("slice", found, at=at.Slice((0,), (0,), (count,), (1,)))
    return reshape(d, first, elements_.shape)


def bucketize(
    d: Lowering, self: Operand, boundaries: TensorRef, *, out_int32: bool = False, **_: object
) -> TensorRef:
    dtype = "int32" if out_int32 else "int64"
    if not isinstance(self, TensorRef):
        return d.add("searchsorted", boundaries, at=at.DeclaredOutputs(((),), (dtype,)))
    return d.add("searchsorted", boundaries, self, at=at.DeclaredOutputs((self.shape,), (dtype,)))


def histc(d: Lowering, self: TensorRef, bins: int = 100, *_: object, **__: object) -> TensorRef:
    """One multiplication per element finds its bin, one addition counts it."""
    size = elements(self.shape)
    attrs = at.CustomCost(((bins,),), (self.dtype,), add=size, mul=size)
    return d.add("custom", self, at=attrs)


# Cumulative operators


def cumulative(op: str) -> OneOutput:
    """A converter of `cumsum` or `cumprod`; integers are summed as int64."""

    def convert(d: Lowering, self: TensorRef, dim: int, *, dtype: DType = None) -> TensorRef:
        kind = name_of(dtype) if dtype is not None else self.dtype
        if dtype is None and not kind.startswith(INEXACT):
            kind = "int64"
        x = d.cast(self, kind)
        return d.add(op, x, at=at.CumSum(dim)) if x.rank else x

    return convert


def cumulative_extreme(op: str) -> Converter:
    """A converter of `cummax` or `cummin`: values and indices."""

    def convert(d: Lowering, self: TensorRef, dim: int) -> list[TensorRef]:
        if not self.rank:
            return kthvalue(d, self, 1, dim)
        return list(d.several(op, self, at=at.CumSum(dim)))

    return convert


def logcumsumexp(d: Lowering, self: TensorRef, dim: int) -> TensorRef:
    """The log of the cumulative sum of exp(x − m), plus m, the cumulative maximum."""
    if not self.rank:
        return d.add("identity", self)
    best = d.several("cum_max", self, at=at.CumSum(dim))[0]
    sums = d.add("cum_sum", d.add("exp", d.add("sub", self, best)), at=at.CumSum(dim))
    return d.add("add", d.add("log", sums), best)


# Distances


def cdist(
    d: Lowering, x1: TensorRef, x2: TensorRef, p: float = 2.0, compute_mode: int | None = None
) -> TensorRef:
    by_product = compute_mode == 1 or (
        compute_mode in (None, 0) and max(x1.shape[-2], x2.shape[-2]) > MM_ROWS
    )
    if p == 2 and by_product:
        return euclidean_dist(d, x1, x2)
    return d.add("cdist", x1, x2, at=at.Distance(float(p)))


def pdist(d: Lowering, self: TensorRef, p: float = 2.0) -> TensorRef:
    return d.add("cdist", self, at=at.Distance(float(p)))


# Bags of embeddings


class EmbeddingBagArgs(Struct, frozen=True):
    """Arguments of aten::embedding_bag and its forms with another name."""

    weight: TensorRef
    indices: TensorRef
    offsets: TensorRef
    scale_grad_by_freq: bool = False
    mode: int = 0
    sparse: bool = False
    per_sample_weights: TensorRef | None = None
    include_last_offset: bool = False
    padding_idx: int | None = None


@takes(EmbeddingBagArgs)
def embedding_bag(d: Lowering, args: EmbeddingBagArgs) -> TensorRef:
    """The sum, mean or maximum of the rows of each bag."""
    require_index(args.indices, args.offsets)
    bags = args.offsets.shape[0] - bool(args.include_last_offset)
    attrs = at.EmbeddingBag(args.weight.shape[0], args.weight.shape[1], bags, BAG_MODES[args.mode])
    inputs = [
        args.indices,
        args.offsets,
        *([] if args.per_sample_weights is None else [args.per_sample_weights]),
    ]
    if not args.weight.stored or args.weight.dtype != d.floating:
        return _computed_bags(
            d, d.add("gather", args.weight, args.indices, at=at.Gather(0)), attrs, inputs
        )
    return d.add("embedding_bag", *inputs, at=attrs, holds={"weight": args.weight})


def _computed_bags(
    d: Lowering, rows: TensorRef, attrs: at.EmbeddingBag, inputs: list[TensorRef]
) -> TensorRef:
    """The rows of a computed table, combined by bag."""
    count, outputs = elements(rows.shape), attrs.bags * attrs.features
    combined = max(count - outputs, 0)
    costs = at.CustomCost(
        ((attrs.bags, attrs.features),), (rows.dtype,),
        add=combined if attrs.mode != "max" else 0, comp=combined if attrs.mode == "max" else 0,
        div=outputs if attrs.mode == "mean" else 0, mul=count if len(inputs) > 2 else 0,
        estimate="no bag is empty",
    )  # fmt: skip
    return d.add("custom", rows, *inputs[1:], at=costs)


TABLE: dict[str, Converter] = {
    "topk": topk,
    "sort": sort,
    "argsort": argsort,
    "kthvalue": kthvalue,
    "median": median,
    "nanmedian": median,
    "mode": mode,
    "isin": isin,
    "bucketize": bucketize,
    "histc": histc,
    "cumsum": cumulative("cum_sum"),
    "cumprod": cumulative("cum_prod"),
    "cummax": cumulative_extreme("cum_max"),
    "cummin": cumulative_extreme("cum_min"),
    "logcumsumexp": logcumsumexp,
    "cdist": cdist,
    "_cdist_forward": cdist,
    "_pdist_forward": pdist,
    **dict.fromkeys(
        ("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"), embedding_bag
    ),
}
