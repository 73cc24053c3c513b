"""Looking up, putting in, and what is made of nothing: constants and drawn numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layerscope.formats.torch.aten.shaping import broadcast_to, permute, reshape
from layerscope.formats.torch.lowering import Lowering, Refused, TensorRef, Unsupported
from layerscope.graph import attributes as at
from layerscope.graph.types import elements
from layerscope.ops.spec import axis_of, broadcast

PLACES = frozenset(("int64", "int32"))


def _places(*given: TensorRef) -> None:
    """Raise where places are told by what is no whole number; PyTorch may not look without any."""
    for ref in given:
        if ref.dtype not in PLACES and 0 not in ref.shape:
            raise Refused(f"places told by numbers of {ref.dtype}")


def embedding(d: Lowering, weight: TensorRef, indices: TensorRef, *_: Any) -> TensorRef:
    _places(indices)
    if weight.stored and weight.dtype == d.floating:
        told = at.Embedding(*weight.shape)
        return d.add("embedding", indices, at=told, holds={"weight": weight})
    return d.add("gather", weight, indices, at=at.Gather(0))


def embedding_bag(
    d: Lowering,
    weight: TensorRef,
    indices: TensorRef,
    offsets: TensorRef,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: TensorRef | None = None,
    include_last_offset: bool = False,
    *_: Any,
) -> TensorRef:
    """Rows of a table, those of each bag added up, averaged or compared."""
    _places(indices, offsets)
    bags = offsets.shape[0] - bool(include_last_offset)
    modes: tuple[Any, ...] = ("sum", "mean", "max")
    told = at.EmbeddingBag(weight.shape[0], weight.shape[1], bags, modes[mode])
    given = [indices, offsets, *([] if per_sample_weights is None else [per_sample_weights])]
    if not weight.stored or weight.dtype != d.floating:
        return _bags(d, d.add("gather", weight, indices, at=at.Gather(0)), told, given[1:])
    return d.add("embedding_bag", *given, at=told, holds={"weight": weight})


def _bags(
    d: Lowering, rows: TensorRef, told: at.EmbeddingBag, others: list[TensorRef]
) -> TensorRef:
    """Rows that a computed table gave, combined."""
    count, made = elements(rows.shape), told.bags * told.features
    joined = max(count - made, 0)
    counts = at.CustomCost(
        ((told.bags, told.features),), (rows.dtype,),
        add=joined if told.mode != "max" else 0, comp=joined if told.mode == "max" else 0,
        div=made if told.mode == "mean" else 0, mul=count if len(others) > 1 else 0,
        estimate="no bag is empty",
    )  # fmt: skip
    return d.add("custom", rows, *others, at=counts)


def index_select(d: Lowering, self: TensorRef, dim: int, index: TensorRef) -> TensorRef:
    if not self.rank:
        return reshape(d, index_select(d, reshape(d, self, (1,)), 0, index), ())
    if index.rank > 1:
        raise Refused("places that are no row")
    _places(index)
    return d.add("gather", self, index, at=at.Gather(axis_of(dim, max(self.rank, 1))))


def gather(
    d: Lowering, self: TensorRef, dim: int, index: TensorRef, *, sparse_grad: bool = False
) -> TensorRef:
    _places(index)
    return d.add("gather", self, index, at=at.Gather(axis_of(dim, self.rank), elements=True))


def take_along(
    d: Lowering, self: TensorRef, indices: TensorRef, dim: int | None = None
) -> TensorRef:
    if dim is None:
        raise Unsupported("indices into all elements")
    return gather(d, self, dim, indices)


def index(d: Lowering, self: TensorRef, indices: Sequence[TensorRef | None]) -> TensorRef:
    """By tensors of places: along one axis slices are taken, along several single places."""
    given = [(axis, ref) for axis, ref in enumerate(indices) if ref is not None]
    if any(ref.dtype in ("bool", "uint8") for _, ref in given):
        raise Unsupported("places that data decides")
    _places(*[ref for _, ref in given])
    if len(given) == 1:
        axis, ref = given[0]
        return d.add("gather", self, ref, at=at.Gather(axis))
    axes = [axis for axis, _ in given]
    together = axes == list(range(axes[0], axes[-1] + 1))
    rest = [axis for axis in range(self.rank) if axis not in axes]
    x = permute(d, self, (*axes, *rest))
    shape = broadcast(tuple(ref.shape for _, ref in given))
    wide = [reshape(d, broadcast_to(d, ref, shape), (*shape, 1)) for _, ref in given]
    made = d.add("gather_nd", x, d.concat(wide, len(shape)), at=at.GatherND())
    if not together or axes[0] == 0:
        return made
    lead = len(shape)
    order = (*range(lead, lead + axes[0]), *range(lead), *range(lead + axes[0], made.rank))
    return permute(d, made, order)


def index_put(
    d: Lowering,
    self: TensorRef,
    indices: Sequence[TensorRef | None],
    values: TensorRef,
    accumulate: bool = False,
    *_: Any,
) -> TensorRef:
    given = [(axis, ref) for axis, ref in enumerate(indices) if ref is not None]
    if len(given) == 1 and given[0][1].dtype == "bool" and elements(values.shape) == 1:
        axis, mask = given[0]
        if axis == 0:
            tail = (*mask.shape, *(1 for _ in self.shape[mask.rank :]))
            return d.add("where", reshape(d, mask, tail), reshape(d, values, ()), self)
    if any(ref.dtype in ("bool", "uint8") for _, ref in given):
        raise Unsupported("places that data decides")
    _places(*[ref for _, ref in given])
    axes = [axis for axis, _ in given]
    if axes != list(range(len(axes))):
        raise Unsupported("places behind other axes")
    shape = broadcast(tuple(ref.shape for _, ref in given))
    wide = [reshape(d, broadcast_to(d, ref, shape), (*shape, 1)) for _, ref in given]
    joined = d.concat(wide, len(shape)) if len(wide) > 1 else wide[0]
    updates = broadcast_to(d, values, (*shape, *self.shape[len(axes) :]))
    return d.add("scatter_nd", self, joined, updates, at=at.Scatter(0, accumulate))


def scatter(
    d: Lowering,
    self: TensorRef,
    dim: int,
    index: TensorRef,
    src: Any = 0,
    *,
    reduce: str = "",
    value: Any = 0,
) -> TensorRef:
    _places(index)
    if not self.rank:
        row = src if not isinstance(src, TensorRef) else reshape(d, src, (1,))
        one = scatter(d, reshape(d, self, (1,)), 0, reshape(d, index, (1,)), row, reduce=reduce)
        return reshape(d, one, ())
    updates = src
    if not isinstance(src, TensorRef):
        updates = d.add("constant", at=at.DeclaredOutputs((index.shape,), (self.dtype,)))
    elif src.shape != index.shape:
        ends = tuple(index.shape)
        axes = tuple(range(src.rank))
        cut = at.Slice(axes, (0,) * src.rank, ends, (1,) * src.rank)
        updates = d.add("slice", src, at=cut)  # as many as there are indices, a view
    how: Any = COMBINED[reduce] if reduce else ""
    told = at.Scatter(axis_of(dim, self.rank), bool(reduce) and not how, how)
    return d.add("scatter", self, index, updates, at=told)


COMBINED: dict[str, Any] = {
    "add": "", "sum": "", "multiply": "mul", "prod": "mul", "mean": "mean", "amax": "max",
    "amin": "min",
}  # fmt: skip


def _spread(d: Lowering, axis: int, index: TensorRef, like: TensorRef) -> TensorRef:
    """Indices along one axis repeated for all others, as many as there are updates."""
    shape = [1] * like.rank
    shape[axis] = elements(index.shape)
    return broadcast_to(d, reshape(d, index, shape), like.shape)


def _as_row(
    d: Lowering, words: Any, self: TensorRef, index: TensorRef, source: TensorRef, *more: Any
) -> TensorRef:
    """A single number as a row of one."""
    given = [reshape(d, each, (1,)) for each in (self, index, source)]
    return reshape(d, words(d, given[0], 0, *given[1:], *more), ())


def scatter_reduce(
    d: Lowering,
    self: TensorRef,
    dim: int,
    index: TensorRef,
    src: TensorRef,
    reduce: str,
    *,
    include_self: bool = True,
) -> TensorRef:
    return scatter(d, self, dim, index, src, reduce=reduce)


def index_reduce(
    d: Lowering, self: TensorRef, dim: int, index: TensorRef, source: TensorRef, reduce: str, *,
    include_self: bool = True,
) -> TensorRef:  # fmt: skip
    if not self.rank:
        return _as_row(d, index_reduce, self, index, source, reduce)
    axis = axis_of(dim, self.rank)
    return scatter(d, self, axis, _spread(d, axis, index, source), source, reduce=reduce)


def index_fill(d: Lowering, self: TensorRef, dim: int, index: TensorRef, value: Any) -> TensorRef:
    _places(index)
    if not self.rank:
        return reshape(d, index_fill(d, reshape(d, self, (1,)), 0, index, value), ())
    axis = axis_of(dim, self.rank)
    shape = (*self.shape[:axis], elements(index.shape), *self.shape[axis + 1 :])
    filled = d.add("constant", at=at.DeclaredOutputs((shape,), (self.dtype,)))
    return scatter(d, self, axis, _spread(d, axis, index, filled), filled)


def take(d: Lowering, self: TensorRef, index: TensorRef) -> TensorRef:
    """By indices into all elements."""
    _places(index)
    return d.add("gather", reshape(d, self, (elements(self.shape),)), index, at=at.Gather(0))


def put(
    d: Lowering, self: TensorRef, index: TensorRef, source: TensorRef, accumulate: bool = False
) -> TensorRef:
    _places(index)
    count = (elements(index.shape),)
    flat = reshape(d, self, (elements(self.shape),))
    given = [reshape(d, each, count) for each in (index, source)]
    made = d.add("scatter", flat, *given, at=at.Scatter(0, accumulate))
    return reshape(d, made, self.shape)


def bucketize(
    d: Lowering, self: Any, boundaries: TensorRef, *, out_int32: bool = False, **_: Any
) -> TensorRef:
    kind = "int32" if out_int32 else "int64"
    if not isinstance(self, TensorRef):
        return d.add("searchsorted", boundaries, at=at.DeclaredOutputs(((),), (kind,)))
    return d.add("searchsorted", boundaries, self, at=at.DeclaredOutputs((self.shape,), (kind,)))


def is_in(d: Lowering, elements_: Any, test_elements: Any, **_: Any) -> TensorRef:
    """Every element compared with all, where they are few; else both are sorted together."""
    if not isinstance(elements_, TensorRef) or not isinstance(test_elements, TensorRef):
        tensor = elements_ if isinstance(elements_, TensorRef) else test_elements
        return d.add("compare", tensor)
    count, few = elements(elements_.shape), elements(test_elements.shape)
    flat = reshape(d, test_elements, (few,))
    if few < 10 * count**0.145:
        each = reshape(d, elements_, (*elements_.shape, 1))
        return d.add("reduce_any", d.add("compare", each, flat), at=at.Reduce((-1,)))
    row = d.concat([reshape(d, elements_, (count,)), flat], 0)
    ordered, places = d.several("top_k", row, at=at.TopK(count + few, 0))
    equal = d.add("compare", ordered)
    found = d.add("gather", equal, places, at=at.Gather(0))
    cut = d.add("slice", found, at=at.Slice((0,), (0,), (count,), (1,)))
    return reshape(d, cut, elements_.shape)


def scatter_add(
    d: Lowering, self: TensorRef, dim: int, index: TensorRef, src: TensorRef
) -> TensorRef:
    return scatter(d, self, dim, index, src, reduce="add")


def index_add(
    d: Lowering, self: TensorRef, dim: int, index: TensorRef, source: TensorRef, *, alpha: Any = 1
) -> TensorRef:
    _places(index)
    if not self.rank:
        return _as_row(d, index_add, self, index, source)
    if alpha != 1:
        source = d.add("mul", source)
    axis = axis_of(dim, self.rank)
    if axis != 0:
        return scatter_add(d, self, axis, _spread(d, axis, index, source), source)
    places = reshape(d, index, (*index.shape, 1))
    return d.add("scatter_nd", self, places, source, at=at.Scatter(0, True))


def index_copy(
    d: Lowering, self: TensorRef, dim: int, index: TensorRef, source: TensorRef
) -> TensorRef:
    _places(index)
    if not self.rank:
        return _as_row(d, index_copy, self, index, source)
    axis = axis_of(dim, self.rank)
    if axis != 0:
        order = [axis, *(n for n in range(self.rank) if n != axis)]
        back = [order.index(n) for n in range(self.rank)]
        made = index_copy(d, permute(d, self, order), 0, index, permute(d, source, order))
        return permute(d, made, back)
    places = reshape(d, index, (*index.shape, 1))
    return d.add("scatter_nd", self, places, source, at=at.Scatter(0))


def one_hot(d: Lowering, self: TensorRef, num_classes: int = -1) -> TensorRef:
    if num_classes < 1:
        raise Unsupported("as many classes as data has")
    _places(self)
    return d.add("one_hot", self, at=at.OneHot(num_classes, -1, "int64"))


TABLE: dict[str, Any] = {
    "embedding": embedding,
    "index_select": index_select,
    "gather": gather,
    "take_along_dim": take_along,
    "index": index,
    "_unsafe_index": index,
    "index_put": index_put,
    "_index_put_impl": index_put,
    "_unsafe_index_put": index_put,
    "scatter": scatter,
    "scatter_add": scatter_add,
    "index_add": index_add,
    "index_copy": index_copy,
    "one_hot": one_hot,
    **dict.fromkeys(
        ("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"), embedding_bag
    ),
    "scatter_reduce": scatter_reduce,
    "index_reduce": index_reduce,
    "index_fill": index_fill,
    "take": take,
    "put": put,
    "bucketize": bucketize,
    "isin": is_in,
}
