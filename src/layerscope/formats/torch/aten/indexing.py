"""Looking up, putting in, and what is made of nothing: constants and drawn numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layerscope.formats.torch.aten.shaping import broadcast_to, permute, reshape
from layerscope.formats.torch.draft import Draft, NoWords, Ref, Refused
from layerscope.graph import attributes as at
from layerscope.graph.types import elements
from layerscope.ops.rule import axis_of, broadcast

PLACES = frozenset(("int64", "int32"))


def _places(*given: Ref) -> None:
    """Raise where places are told by what is no whole number; PyTorch may not look without any."""
    for ref in given:
        if ref.dtype not in PLACES:
            raise Refused(f"places told by numbers of {ref.dtype}")


def embedding(d: Draft, weight: Ref, indices: Ref, *_: Any) -> Ref:
    _places(indices)
    if weight.stored and weight.dtype == d.floating:
        told = at.Embedding(*weight.shape)
        return d.add("embedding", indices, at=told, holds={"weight": weight})
    return d.add("gather", weight, indices, at=at.Gather(0))


def index_select(d: Draft, self: Ref, dim: int, index: Ref) -> Ref:
    if index.rank > 1:
        raise Refused("places that are no row")
    _places(index)
    return d.add("gather", self, index, at=at.Gather(axis_of(dim, max(self.rank, 1))))


def gather(d: Draft, self: Ref, dim: int, index: Ref, *, sparse_grad: bool = False) -> Ref:
    _places(index)
    return d.add("gather", self, index, at=at.Gather(axis_of(dim, self.rank), elements=True))


def take_along(d: Draft, self: Ref, indices: Ref, dim: int | None = None) -> Ref:
    if dim is None:
        raise NoWords("indices into all elements")
    return gather(d, self, dim, indices)


def index(d: Draft, self: Ref, indices: Sequence[Ref | None]) -> Ref:
    """By tensors of places: along one axis slices are taken, along several single places."""
    given = [(axis, ref) for axis, ref in enumerate(indices) if ref is not None]
    if any(ref.dtype in ("bool", "uint8") for _, ref in given):
        raise NoWords("places that data decides")
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
    d: Draft,
    self: Ref,
    indices: Sequence[Ref | None],
    values: Ref,
    accumulate: bool = False,
    *_: Any,
) -> Ref:
    given = [(axis, ref) for axis, ref in enumerate(indices) if ref is not None]
    if len(given) == 1 and given[0][1].dtype == "bool" and elements(values.shape) == 1:
        axis, mask = given[0]
        if axis == 0:
            tail = (*mask.shape, *(1 for _ in self.shape[mask.rank :]))
            return d.add("where", reshape(d, mask, tail), reshape(d, values, ()), self)
    if any(ref.dtype in ("bool", "uint8") for _, ref in given):
        raise NoWords("places that data decides")
    _places(*[ref for _, ref in given])
    axes = [axis for axis, _ in given]
    if axes != list(range(len(axes))):
        raise NoWords("places behind other axes")
    shape = broadcast(tuple(ref.shape for _, ref in given))
    wide = [reshape(d, broadcast_to(d, ref, shape), (*shape, 1)) for _, ref in given]
    joined = d.concat(wide, len(shape)) if len(wide) > 1 else wide[0]
    updates = broadcast_to(d, values, (*shape, *self.shape[len(axes) :]))
    return d.add("scatter_nd", self, joined, updates, at=at.Scatter(0, accumulate))


def scatter(
    d: Draft, self: Ref, dim: int, index: Ref, src: Any = 0, *, reduce: str = "", value: Any = 0
) -> Ref:
    _places(index)
    updates = src
    if not isinstance(src, Ref):
        updates = d.add("constant", at=at.Told((index.shape,), (self.dtype,)))
    elif src.shape != index.shape:
        raise NoWords("more updates than indices")
    axis = axis_of(dim, self.rank)
    return d.add("scatter", self, index, updates, at=at.Scatter(axis, bool(reduce)))


def scatter_add(d: Draft, self: Ref, dim: int, index: Ref, src: Ref) -> Ref:
    return scatter(d, self, dim, index, src, reduce="add")


def index_add(d: Draft, self: Ref, dim: int, index: Ref, source: Ref, *, alpha: Any = 1) -> Ref:
    _places(index)
    if axis_of(dim, self.rank) != 0:
        raise NoWords("adding behind other axes")
    places = reshape(d, index, (*index.shape, 1))
    return d.add("scatter_nd", self, places, source, at=at.Scatter(0, True))


def index_copy(d: Draft, self: Ref, dim: int, index: Ref, source: Ref) -> Ref:
    _places(index)
    axis = axis_of(dim, self.rank)
    if axis != 0:
        order = [axis, *(n for n in range(self.rank) if n != axis)]
        back = [order.index(n) for n in range(self.rank)]
        made = index_copy(d, permute(d, self, order), 0, index, permute(d, source, order))
        return permute(d, made, back)
    places = reshape(d, index, (*index.shape, 1))
    return d.add("scatter_nd", self, places, source, at=at.Scatter(0))


def one_hot(d: Draft, self: Ref, num_classes: int = -1) -> Ref:
    if num_classes < 1:
        raise NoWords("as many classes as data has")
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
}
