"""Slices, splits and concatenation, and writes into a slice."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from msgspec import Struct

from layerscope.formats.torch.aten.control import constant
from layerscope.formats.torch.aten.layout import reshape, unsqueeze
from layerscope.formats.torch.aten.signatures import Converter, IntOrInts, Scalar, takes
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.graph import attributes as at
from layerscope.graph.types import elements
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
    return d.add("slice", self, at=_slice_of(taken, dim % self.rank, step))


def _slice_of(indices: range, axis: int, step: int) -> at.Slice:
    return at.Slice((axis,), (indices[0],), (indices[-1] + 1,), (step,))


def narrow(
    d: Lowering, self: TensorRef, dim: int, start: int | TensorRef, length: int
) -> TensorRef:
    if not isinstance(start, int):
        raise Unsupported("a start that depends on data")
    start = start % self.shape[dim] if start < 0 else start
    return slice_(d, self, dim, start, start + length)


def select(d: Lowering, self: TensorRef, dim: int, index: int) -> TensorRef:
    axis = dim % self.rank
    start = index % self.shape[axis]
    row = slice_(d, self, axis, start, start + 1)
    return reshape(d, row, (*self.shape[:axis], *self.shape[axis + 1 :]))


class SliceScatterArgs(Struct, frozen=True):
    """Arguments of aten::slice_scatter."""

    self: TensorRef
    src: TensorRef
    dim: int = 0
    start: int | None = None
    end: int | None = None
    step: int = 1


@takes(SliceScatterArgs)
def slice_scatter(d: Lowering, args: SliceScatterArgs) -> TensorRef:
    """A copy of `self` with `src` written into a slice."""
    taken = range(*slice(args.start, args.end, args.step).indices(args.self.shape[args.dim]))
    if not taken:
        raise Unsupported("an empty slice")
    attrs = _slice_of(taken, args.dim % args.self.rank, args.step)
    return d.add("insert", args.self, d.cast(args.src, args.self.dtype), at=attrs)


def select_scatter(d: Lowering, self: TensorRef, src: TensorRef, dim: int, index: int) -> TensorRef:
    axis = dim % self.rank
    start = index % self.shape[axis]
    row = reshape(d, src, (*self.shape[:axis], 1, *self.shape[axis + 1 :]))
    return slice_scatter(d, self, row, axis, start, start + 1)


def view_scatter(
    d: Lowering, self: TensorRef, src: TensorRef, *_: object, **__: object
) -> TensorRef:
    """A copy of `self` with `src` written into a diagonal or a strided view."""
    return d.add("insert", d.add("identity", self), d.cast(src, self.dtype))


def fill_diagonal(
    d: Lowering, self: TensorRef, fill_value: Scalar, wrap: bool = False
) -> TensorRef:
    """A number written into the diagonal; with wrap, a tall matrix has several."""
    size = min(self.shape)
    if wrap and self.rank == 2:
        size = -(-elements(self.shape) // (self.shape[1] + 1))
    return d.add("insert", self, constant(d, (size,), self.dtype))


def block_diag(d: Lowering, tensors: Sequence[TensorRef]) -> TensorRef:
    """Matrices written into zeros."""
    sides = [(1, *part.shape)[-2:] if part.rank else (1, 1) for part in tensors]
    shape = (sum([rows for rows, _ in sides]), sum([columns for _, columns in sides]))
    whole = constant(d, shape, tensors[0].dtype)
    for part in tensors:
        if 0 not in part.shape:
            whole = d.add("insert", whole, part)
    return whole


def diag_embed(
    d: Lowering, self: TensorRef, offset: int = 0, dim1: int = -2, dim2: int = -1
) -> TensorRef:
    """Rows written into zeros as diagonals."""
    size = self.shape[-1] + abs(offset)
    shape = list(self.shape[:-1])
    for axis in sorted([axis_of(n, self.rank + 1) for n in (dim1, dim2)]):
        shape.insert(axis, size)
    return d.add("insert", constant(d, tuple(shape), self.dtype), self)


def _split(d: Lowering, self: TensorRef, sizes: Sequence[int], dim: int) -> list[TensorRef]:
    if len(sizes) == 1:
        return [self]
    if 0 in sizes:
        return _split_with_empty(d, self, sizes, axis_of(dim, self.rank))
    return list(d.several("split", self, at=at.Split(dim % self.rank, tuple(sizes))))


def _split_with_empty(
    d: Lowering, self: TensorRef, sizes: Sequence[int], axis: int
) -> list[TensorRef]:
    """Pieces of size 0 are constants, the others come from a split."""
    full = iter(_split(d, self, [size for size in sizes if size], axis))
    empty = (*self.shape[:axis], 0, *self.shape[axis + 1 :])
    return [next(full) if size else constant(d, empty, self.dtype) for size in sizes]


def split(d: Lowering, self: TensorRef, split_size: IntOrInts, dim: int = 0) -> list[TensorRef]:
    if not isinstance(split_size, int):
        return _split(d, self, split_size, dim)
    whole = self.shape[dim]
    sizes = [min(split_size, whole - start) for start in range(0, whole, split_size)]
    return _split(d, self, sizes, dim)


def chunk(d: Lowering, self: TensorRef, chunks: int, dim: int = 0) -> list[TensorRef]:
    return split(d, self, -(-self.shape[dim] // chunks), dim)


def tensor_split(
    d: Lowering, self: TensorRef, indices_or_sections: IntOrInts | TensorRef, dim: int = 0
) -> list[TensorRef]:
    whole = self.shape[dim]
    if isinstance(indices_or_sections, int):
        small, larger = divmod(whole, indices_or_sections)
        sizes = [small + (n < larger) for n in range(indices_or_sections)]
        return _split(d, self, sizes, dim)
    if isinstance(indices_or_sections, TensorRef):
        raise Unsupported("indices that depend on data")
    ends = [0, *indices_or_sections, whole]
    return _split(d, self, [b - a for a, b in itertools.pairwise(ends)], dim)


def unbind(d: Lowering, self: TensorRef, dim: int = 0) -> list[TensorRef]:
    axis = dim % self.rank
    shape = (*self.shape[:axis], *self.shape[axis + 1 :])
    pieces = _split(d, self, [1] * self.shape[axis], axis)
    return [reshape(d, piece, shape) for piece in pieces]


def cat(d: Lowering, tensors: Sequence[TensorRef], dim: int = 0) -> TensorRef:
    parts = tensors
    if any(0 in part.shape for part in tensors):  # PyTorch leaves them out
        parts = [part for part in tensors if 0 not in part.shape]
    if not parts:
        raise Unsupported("a concatenation of empty tensors")
    if len(parts) == 1:
        return d.add("identity", parts[0])
    dtypes = {part.dtype for part in parts}
    if len(dtypes) > 1:
        dtype = next((k for k in ("fp64", "fp32", "bf16", "fp16", "int64") if k in dtypes), "")
        parts = [d.cast(part, dtype or parts[0].dtype) for part in parts]
    return d.add("concat", *parts, at=at.Concat(axis_of(dim, parts[0].rank)))


def stack(d: Lowering, tensors: Sequence[TensorRef], dim: int = 0) -> TensorRef:
    axis = axis_of(dim, tensors[0].rank + 1)
    return cat(d, [unsqueeze(d, part, axis) for part in tensors], axis)


TABLE: dict[str, Converter] = {
    "slice": slice_,
    "slice_copy": slice_,
    "narrow": narrow,
    "narrow_copy": narrow,
    "select": select,
    "select_copy": select,
    "slice_scatter": slice_scatter,
    "select_scatter": select_scatter,
    "diagonal_scatter": view_scatter,
    "fill_diagonal": fill_diagonal,
    "as_strided_scatter": view_scatter,
    "block_diag": block_diag,
    "diag_embed": diag_embed,
    **dict.fromkeys(
        (
            "split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes", "split_copy",
            "split_with_sizes_copy",
        ),
        split,
    ),
    "chunk": chunk,
    "unsafe_chunk": chunk,
    "tensor_split": tensor_split,
    "unbind": unbind,
    "unbind_copy": unbind,
    **dict.fromkeys(("cat", "concat", "concatenate"), cat),
    "stack": stack,
}  # fmt: skip
