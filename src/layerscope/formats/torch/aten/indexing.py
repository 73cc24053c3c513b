"""Gather, scatter, embedding, one-hot and selection by a mask."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from layerscope.formats.torch.aten.control import constant, scalar_constant
from layerscope.formats.torch.aten.layout import broadcast_to, permute, reshape
from layerscope.formats.torch.aten.promotion import promote_types
from layerscope.formats.torch.aten.reduction import renorm
from layerscope.formats.torch.aten.signatures import OneOutput, Operand, Scalar, takes
from layerscope.formats.torch.aten.slice_concat import slice_
from layerscope.formats.torch.lowering import Lowering, Refused, TensorRef, Unsupported
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape, elements
from layerscope.ops.spec import axis_of, broadcast

INDEX_DTYPES = frozenset(("int64", "int32"))
Indices = Sequence[TensorRef | None]  # one for each axis; None takes all of it
Reduction = Literal["", "mul", "mean", "max", "min"]
REDUCTIONS: dict[str, Reduction] = {
    "add": "", "sum": "", "multiply": "mul", "prod": "mul", "mean": "mean", "amax": "max",
    "amin": "min",
}  # fmt: skip


def require_index(*indices: TensorRef) -> None:
    """Raise for an index that is not of integers; meta kernels may not check it."""
    for ref in indices:
        if ref.dtype not in INDEX_DTYPES and 0 not in ref.shape:
            raise Refused(f"an index of {ref.dtype}, expected integers")


# Reads


def embedding(d: Lowering, weight: TensorRef, indices: TensorRef, *_: object) -> TensorRef:
    require_index(indices)
    if weight.stored and weight.dtype == d.floating:
        return d.add("embedding", indices, at=at.Embedding(*weight.shape), holds={"weight": weight})
    return d.add("gather", weight, indices, at=at.Gather(0))


def embedding_renorm(
    d: Lowering, self: TensorRef, indices: TensorRef, max_norm: Scalar, norm_type: Scalar
) -> TensorRef:
    """The rows of these indices scaled down to a norm of at most max_norm."""
    index = reshape(d, indices, (elements(indices.shape),))
    rows = renorm(d, index_select(d, self, 0, index), norm_type, 0, max_norm)
    return index_copy(d, self, 0, index, rows)


def index_select(d: Lowering, self: TensorRef, dim: int, index: TensorRef) -> TensorRef:
    if not self.rank:
        return reshape(d, index_select(d, reshape(d, self, (1,)), 0, index), ())
    if index.rank > 1:
        raise Refused(f"an index of rank {index.rank}, expected a vector")
    require_index(index)
    return d.add("gather", self, index, at=at.Gather(axis_of(dim, max(self.rank, 1))))


def gather(
    d: Lowering, self: TensorRef, dim: int, index: TensorRef, *, sparse_grad: bool = False
) -> TensorRef:
    require_index(index)
    return d.add("gather", self, index, at=at.Gather(axis_of(dim, self.rank), elements=True))


def take_along_dim(
    d: Lowering, self: TensorRef, indices: TensorRef, dim: int | None = None
) -> TensorRef:
    if dim is None:
        raise Unsupported("indices into the flattened tensor")
    return gather(d, self, dim, indices)


def take(d: Lowering, self: TensorRef, index: TensorRef) -> TensorRef:
    """By indices into the flattened tensor."""
    require_index(index)
    return d.add("gather", reshape(d, self, (elements(self.shape),)), index, at=at.Gather(0))


def index(d: Lowering, self: TensorRef, indices: Indices) -> TensorRef:
    """By index tensors: along one axis a `gather` of slices, along several a `gather_nd`."""
    axes, tensors = _index_tensors(indices)
    if len(tensors) == 1:
        return d.add("gather", self, tensors[0], at=at.Gather(axes[0]))
    adjacent = axes == list(range(axes[0], axes[-1] + 1))
    rest = [axis for axis in range(self.rank) if axis not in axes]
    x = permute(d, self, (*axes, *rest))
    shape, columns = _index_columns(d, tensors)
    y = d.add("gather_nd", x, d.concat(columns, len(shape)), at=at.GatherND())
    if not adjacent or axes[0] == 0:
        return y
    lead = len(shape)
    order = (*range(lead, lead + axes[0]), *range(lead), *range(lead + axes[0], y.rank))
    return permute(d, y, order)


def _index_tensors(indices: Indices) -> tuple[list[int], list[TensorRef]]:
    """The axes that have an index tensor, and the tensors; masks have no converter."""
    axes = [axis for axis, ref in enumerate(indices) if ref is not None]
    tensors = [ref for ref in indices if ref is not None]
    if any(ref.dtype in ("bool", "uint8") for ref in tensors):
        raise Unsupported("indices that depend on data")
    require_index(*tensors)
    return axes, tensors


def _index_columns(d: Lowering, tensors: list[TensorRef]) -> tuple[Shape, list[TensorRef]]:
    """The common shape of index tensors, and each as a column of the index of `gather_nd`."""
    shape = broadcast(tuple(ref.shape for ref in tensors))
    return shape, [reshape(d, broadcast_to(d, ref, shape), (*shape, 1)) for ref in tensors]


def unfold(d: Lowering, self: TensorRef, dimension: int, size: int, step: int) -> TensorRef:
    """Windows along one axis as a new last axis; windows that do not overlap are a reshape."""
    if not self.rank:
        return reshape(d, self, (1,))
    axis = axis_of(dimension, self.rank)
    count = (self.shape[axis] - size) // step + 1
    if size == step:
        x = slice_(d, self, axis, 0, count * size)
        windows = reshape(d, x, (*self.shape[:axis], count, size, *self.shape[axis + 1 :]))
    else:
        positions = constant(d, (count, size), "int64")
        windows = d.add("gather", self, positions, at=at.Gather(axis))
    order = [n for n in range(windows.rank) if n != axis + 1]
    return permute(d, windows, (*order, axis + 1))


def roll(
    d: Lowering, self: TensorRef, shifts: int | Sequence[int], dims: int | Sequence[int] = ()
) -> TensorRef:
    for axis in (dims,) if isinstance(dims, int) else dims:
        axis_of(axis, self.rank)
    return d.add("roll", self)


def one_hot(d: Lowering, self: TensorRef, num_classes: int = -1) -> TensorRef:
    if num_classes < 1:
        raise Unsupported("a number of classes that depends on data")
    require_index(self)
    return d.add("one_hot", self, at=at.OneHot(num_classes, -1, "int64"))


# Selection by a mask


def where(
    d: Lowering, condition: TensorRef, self: Operand | None = None, other: Operand | None = None
) -> TensorRef:
    if self is None:
        raise Unsupported("indices that depend on data")
    if condition.dtype not in ("bool", "uint8"):
        raise Refused(f"a condition of {condition.dtype}")
    dtypes = [ref.dtype for ref in (self, other) if isinstance(ref, TensorRef)]
    dtype = dtypes[0] if dtypes else d.floating
    if len(dtypes) == 2 and dtypes[0] != dtypes[1]:
        dtype = promote_types(*dtypes)
    choices = [
        d.cast(each, dtype) if isinstance(each, TensorRef) else scalar_constant(d, dtype)
        for each in (self, other)
    ]
    return d.add("where", condition, *choices)


def masked_fill(d: Lowering, self: TensorRef, mask: TensorRef, value: Operand) -> TensorRef:
    if mask.dtype != "bool":
        raise Refused(f"a mask of {mask.dtype}")
    if isinstance(value, TensorRef):
        if value.rank:
            raise Unsupported("a fill value that is not a scalar")
        filler = d.cast(value, self.dtype)
    else:
        filler = scalar_constant(d, self.dtype)
    return d.add("where", mask, filler, self)


# Writes


def index_put(
    d: Lowering,
    self: TensorRef,
    indices: Indices,
    values: TensorRef,
    accumulate: bool = False,
    *_: object,
) -> TensorRef:
    """A mask with one value is a `where`; index tensors of the first axes a `scatter_nd`."""
    tensors = [ref for ref in indices if ref is not None]
    if len(tensors) == 1 and tensors[0].dtype == "bool" and elements(values.shape) == 1:
        mask = tensors[0]
        if indices[0] is mask:
            shape = (*mask.shape, *(1 for _ in self.shape[mask.rank :]))
            return d.add("where", reshape(d, mask, shape), reshape(d, values, ()), self)
    axes, tensors = _index_tensors(indices)
    if axes != list(range(len(axes))):
        raise Unsupported("an index of other than the first axes")
    shape, columns = _index_columns(d, tensors)
    joined = d.concat(columns, len(shape)) if len(columns) > 1 else columns[0]
    updates = broadcast_to(d, values, (*shape, *self.shape[len(axes) :]))
    return d.add("scatter_nd", self, joined, updates, at=at.Scatter(0, accumulate))


class ScatterArgs(Struct, frozen=True):
    """Arguments of the overloads of aten::scatter; a scalar may be `src` or `value`."""

    self: TensorRef
    dim: int
    index: TensorRef
    src: Operand = 0
    reduce: str = ""
    value: Scalar = 0


@takes(ScatterArgs)
def scatter(d: Lowering, args: ScatterArgs) -> TensorRef:
    require_index(args.index)
    if not args.self.rank:
        row = args.src if not isinstance(args.src, TensorRef) else reshape(d, args.src, (1,))
        one = scatter(
            d, reshape(d, args.self, (1,)), 0, reshape(d, args.index, (1,)), row, reduce=args.reduce
        )
        return reshape(d, one, ())
    if not isinstance(args.src, TensorRef):
        updates = constant(d, args.index.shape, args.self.dtype)
    elif args.src.shape != args.index.shape:  # a view of as many elements as there are indices
        axes = tuple(range(args.src.rank))
        part = at.Slice(axes, (0,) * args.src.rank, tuple(args.index.shape), (1,) * args.src.rank)
        updates = d.add("slice", args.src, at=part)
    else:
        updates = args.src
    how = REDUCTIONS[args.reduce] if args.reduce else ""
    attrs = at.Scatter(axis_of(args.dim, args.self.rank), bool(args.reduce) and not how, how)
    return d.add("scatter", args.self, args.index, updates, at=attrs)


def scatter_add(
    d: Lowering, self: TensorRef, dim: int, index: TensorRef, src: TensorRef
) -> TensorRef:
    return scatter(d, self, dim, index, src, reduce="add")


def scatter_reduce(
    d: Lowering,
    self: TensorRef,
    dim: int,
    index: TensorRef,
    src: TensorRef,
    reduce: str,
    **_: object,
) -> TensorRef:
    return scatter(d, self, dim, index, src, reduce=reduce)


def _for_all_axes(d: Lowering, axis: int, index: TensorRef, updates: TensorRef) -> TensorRef:
    """An index along one axis expanded to the shape of the updates."""
    if not elements(updates.shape):  # no index is read
        return constant(d, updates.shape, index.dtype)
    shape = [1] * updates.rank
    shape[axis] = elements(index.shape)
    return broadcast_to(d, reshape(d, index, shape), updates.shape)


def _of_rank_0(
    d: Lowering,
    converter: OneOutput,
    tensors: tuple[TensorRef, TensorRef, TensorRef],
    *args: object,
) -> TensorRef:
    """The converter on self, index and source of rank 0, each as a vector of one element."""
    self, index, source = [reshape(d, each, (1,)) for each in tensors]
    return reshape(d, converter(d, self, 0, index, source, *args), ())


def index_reduce(
    d: Lowering,
    self: TensorRef,
    dim: int,
    index: TensorRef,
    source: TensorRef,
    reduce: str,
    **_: object,
) -> TensorRef:
    if not self.rank:
        return _of_rank_0(d, index_reduce, (self, index, source), reduce)
    axis = axis_of(dim, self.rank)
    return scatter(d, self, axis, _for_all_axes(d, axis, index, source), source, reduce=reduce)


def index_fill(
    d: Lowering, self: TensorRef, dim: int, index: TensorRef, value: Operand
) -> TensorRef:
    require_index(index)
    if not self.rank:
        return reshape(d, index_fill(d, reshape(d, self, (1,)), 0, index, value), ())
    axis = axis_of(dim, self.rank)
    shape = (*self.shape[:axis], elements(index.shape), *self.shape[axis + 1 :])
    filled = constant(d, shape, self.dtype)
    return scatter(d, self, axis, _for_all_axes(d, axis, index, filled), filled)


def index_add(
    d: Lowering,
    self: TensorRef,
    dim: int,
    index: TensorRef,
    source: TensorRef,
    *,
    alpha: Scalar = 1,
) -> TensorRef:
    require_index(index)
    if not self.rank:
        return _of_rank_0(d, index_add, (self, index, source))
    if alpha != 1:
        source = d.add("mul", source)
    axis = axis_of(dim, self.rank)
    if axis != 0:
        return scatter_add(d, self, axis, _for_all_axes(d, axis, index, source), source)
    column = reshape(d, index, (*index.shape, 1))
    return d.add("scatter_nd", self, column, source, at=at.Scatter(0, True))


def index_copy(
    d: Lowering, self: TensorRef, dim: int, index: TensorRef, source: TensorRef
) -> TensorRef:
    require_index(index)
    if not self.rank:
        return _of_rank_0(d, index_copy, (self, index, source))
    axis = axis_of(dim, self.rank)
    if axis != 0:
        order = [axis, *(n for n in range(self.rank) if n != axis)]
        back = [order.index(n) for n in range(self.rank)]
        y = index_copy(d, permute(d, self, order), 0, index, permute(d, source, order))
        return permute(d, y, back)
    column = reshape(d, index, (*index.shape, 1))
    return d.add("scatter_nd", self, column, source, at=at.Scatter(0))


def put(
    d: Lowering, self: TensorRef, index: TensorRef, source: TensorRef, accumulate: bool = False
) -> TensorRef:
    """By indices into the flattened tensor."""
    require_index(index)
    count = (elements(index.shape),)
    flat = reshape(d, self, (elements(self.shape),))
    inputs = [reshape(d, each, count) for each in (index, source)]
    y = d.add("scatter", flat, *inputs, at=at.Scatter(0, accumulate))
    return reshape(d, y, self.shape)


def unfold_backward(
    d: Lowering, grad_in: TensorRef, input_sizes: Sequence[int], *_: object
) -> TensorRef:
    """Each element of a window is added to the element it came from."""
    shape = tuple(input_sizes)
    count = math.prod(grad_in.shape)
    positions = constant(d, (count,), "int64")
    flat = reshape(d, grad_in, (count,))
    zeros = constant(d, (math.prod(shape),), grad_in.dtype)
    y = d.add("scatter", zeros, positions, flat, at=at.Scatter(0, add=True))
    return reshape(d, y, shape)


TABLE: dict[str, OneOutput] = {
    "embedding": embedding,
    "index_select": index_select,
    "gather": gather,
    "take_along_dim": take_along_dim,
    "take": take,
    "index": index,
    "_unsafe_index": index,
    "unfold": unfold,
    "unfold_copy": unfold,
    "unfold_backward": unfold_backward,
    "roll": roll,
    "one_hot": one_hot,
    "where": where,
    "masked_fill": masked_fill,
    **dict.fromkeys(("index_put", "_index_put_impl", "_unsafe_index_put"), index_put),
    "scatter": scatter,
    "scatter_add": scatter_add,
    "scatter_reduce": scatter_reduce,
    "index_reduce": index_reduce,
    "index_fill": index_fill,
    "embedding_renorm": embedding_renorm,
    "index_add": index_add,
    "index_copy": index_copy,
    "put": put,
}
