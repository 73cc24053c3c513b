"""Cuts and joins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from layerscope.formats.torch.aten.shaping import permute, reshape, unsqueeze
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape
from layerscope.ops.spec import axis_of


def slice_(
    d: Lowering,
    self: TensorRef,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> TensorRef:
    size = self.shape[dim]
    taken = range(*slice(start, end, step).indices(size))
    if len(taken) == size:
        return self
    if not taken:
        raise Unsupported("an empty slice")
    told = at.Slice((dim % self.rank,), (taken[0],), (taken[-1] + 1,), (step,))
    return d.add("slice", self, at=told)


def narrow(d: Lowering, self: TensorRef, dim: int, start: Any, length: int) -> TensorRef:
    if not isinstance(start, int):
        raise Unsupported("a start that data decides")
    start = start % self.shape[dim] if start < 0 else start
    return slice_(d, self, dim, start, start + length)


def select(d: Lowering, self: TensorRef, dim: int, index: int) -> TensorRef:
    axis = dim % self.rank
    place = index % self.shape[axis]
    one = slice_(d, self, axis, place, place + 1)
    return reshape(d, one, (*self.shape[:axis], *self.shape[axis + 1 :]))


def slice_scatter(
    d: Lowering,
    self: TensorRef,
    src: TensorRef,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> TensorRef:
    """A tensor with a part of it written anew."""
    taken = range(*slice(start, end, step).indices(self.shape[dim]))
    if not taken:
        raise Unsupported("an empty slice")
    cut = at.Slice((dim % self.rank,), (taken[0],), (taken[-1] + 1,), (step,))
    return d.add("insert", self, d.cast(src, self.dtype), at=cut)


def select_scatter(d: Lowering, self: TensorRef, src: TensorRef, dim: int, index: int) -> TensorRef:
    axis = dim % self.rank
    start = index % self.shape[axis]
    one = reshape(d, src, (*self.shape[:axis], 1, *self.shape[axis + 1 :]))
    return slice_scatter(d, self, one, axis, start, start + 1)


def _pieces(d: Lowering, self: TensorRef, sizes: Sequence[int], dim: int) -> list[TensorRef]:
    if len(sizes) == 1:
        return [self]
    if 0 in sizes:
        return _with_empty(d, self, sizes, axis_of(dim, self.rank))
    return list(d.several("split", self, at=at.Split(dim % self.rank, tuple(sizes))))


def _with_empty(d: Lowering, self: TensorRef, sizes: Sequence[int], axis: int) -> list[TensorRef]:
    """Pieces of which some have no elements, which no node makes."""
    full = iter(_pieces(d, self, [size for size in sizes if size], axis))
    nothing = at.DeclaredOutputs(((*self.shape[:axis], 0, *self.shape[axis + 1 :]),), (self.dtype,))
    return [next(full) if size else d.add("constant", at=nothing) for size in sizes]


def split(d: Lowering, self: TensorRef, split_size: Any, dim: int = 0) -> list[TensorRef]:
    if not isinstance(split_size, int):
        return _pieces(d, self, split_size, dim)
    whole = self.shape[dim]
    sizes = [min(split_size, whole - start) for start in range(0, whole, split_size)]
    return _pieces(d, self, sizes, dim)


def chunk(d: Lowering, self: TensorRef, chunks: int, dim: int = 0) -> list[TensorRef]:
    return split(d, self, -(-self.shape[dim] // chunks), dim)


def tensor_split(d: Lowering, self: TensorRef, parts: Any, dim: int = 0) -> list[TensorRef]:
    whole = self.shape[dim]
    if isinstance(parts, int):
        small, more = divmod(whole, parts)
        return _pieces(d, self, [small + (n < more) for n in range(parts)], dim)
    if isinstance(parts, TensorRef):
        raise Unsupported("places that data decides")
    ends = [0, *parts, whole]
    return _pieces(d, self, [b - a for a, b in itertools.pairwise(ends)], dim)


def unbind(d: Lowering, self: TensorRef, dim: int = 0) -> list[TensorRef]:
    axis = dim % self.rank
    shape = (*self.shape[:axis], *self.shape[axis + 1 :])
    pieces = _pieces(d, self, [1] * self.shape[axis], axis)
    return [reshape(d, piece, shape) for piece in pieces]


def cat(d: Lowering, tensors: Sequence[TensorRef], dim: int = 0) -> TensorRef:
    parts = tensors
    if any(0 in part.shape for part in tensors):  # PyTorch leaves them out
        parts = [part for part in tensors if 0 not in part.shape]
    if not parts:
        raise Unsupported("nothing to join")
    if len(parts) == 1:
        return d.add("identity", parts[0])
    kinds = {part.dtype for part in parts}
    if len(kinds) > 1:
        kind = next((k for k in ("fp64", "fp32", "bf16", "fp16", "int64") if k in kinds), "")
        parts = [d.cast(part, kind or parts[0].dtype) for part in parts]
    return d.add("concat", *parts, at=at.Concat(axis_of(dim, parts[0].rank)))


def stack(d: Lowering, tensors: Sequence[TensorRef], dim: int = 0) -> TensorRef:
    axis = axis_of(dim, tensors[0].rank + 1)
    return cat(d, [unsqueeze(d, part, axis) for part in tensors], axis)


def unfold(d: Lowering, self: TensorRef, dimension: int, size: int, step: int) -> TensorRef:
    """Windows along one axis, written behind the last; apart from each other it is a new shape."""
    if not self.rank:
        return reshape(d, self, (1,))
    axis = axis_of(dimension, self.rank)
    count = (self.shape[axis] - size) // step + 1
    if size == step:
        x = slice_(d, self, axis, 0, count * size)
        shape: Shape = (*self.shape[:axis], count, size, *self.shape[axis + 1 :])
        apart = reshape(d, x, shape)
        order = [n for n in range(len(shape)) if n != axis + 1]
        return permute(d, apart, (*order, axis + 1))
    index = d.add("constant", at=at.DeclaredOutputs(((count, size),), ("int64",)))
    taken = d.add("gather", self, index, at=at.Gather(axis))
    order = [n for n in range(taken.rank) if n != axis + 1]
    return permute(d, taken, (*order, axis + 1))


def unfold_backward(
    d: Lowering, grad_in: TensorRef, input_sizes: Sequence[int], dim: int, size: int, step: int
) -> TensorRef:
    """Windows added up where they stood."""
    shape = tuple(input_sizes)
    count = math.prod(grad_in.shape)
    ground = at.DeclaredOutputs(((math.prod(shape),),), (grad_in.dtype,))
    spots = d.add("constant", at=at.DeclaredOutputs(((count,),), ("int64",)))
    flat = reshape(d, grad_in, (count,))
    made = d.add("scatter", d.add("constant", at=ground), spots, flat, at=at.Scatter(0, add=True))
    return reshape(d, made, shape)


TABLE: dict[str, Any] = {
    "slice": slice_,
    "narrow": narrow,
    "select": select,
    "split": split,
    "split_with_sizes": split,
    "unsafe_split": split,
    "unsafe_split_with_sizes": split,
    "split_copy": split,
    "split_with_sizes_copy": split,
    "narrow_copy": narrow,
    "slice_copy": slice_,
    "slice_scatter": slice_scatter,
    "select_scatter": select_scatter,
    "select_copy": select,
    "unbind_copy": unbind,
    "unfold_copy": unfold,
    "chunk": chunk,
    "unsafe_chunk": chunk,
    "tensor_split": tensor_split,
    "unbind": unbind,
    "cat": cat,
    "concat": cat,
    "concatenate": cat,
    "stack": stack,
    "unfold": unfold,
    "unfold_backward": unfold_backward,
}
