"""Shapes, axis order, padding, copies, views and complex parts: operators that compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from layerscope.formats.torch.aten.signatures import Converter, DType, IntOrInts, OneOutput, Scalar
from layerscope.formats.torch.dtypes import name_of
from layerscope.formats.torch.lowering import Lowering, Refused, TensorRef, Unsupported
from layerscope.graph import attributes as at
from layerscope.graph.types import DTYPE_BITS, Source, elements
from layerscope.ops.complex_arithmetic import is_complex
from layerscope.ops.spec import REAL_PARTS, axis_of

PadMode = Literal["constant", "reflect", "edge"]
PAD_MODES: dict[str, PadMode] = {"reflect": "reflect", "replicate": "edge", "circular": "edge"}

# Shapes


def reshape(d: Lowering, self: TensorRef, shape: Sequence[int]) -> TensorRef:
    """The tensor itself if it has the shape already; -1 is inferred."""
    sizes = list(shape)
    if -1 in sizes:
        others = -elements(tuple(sizes))
        sizes[sizes.index(-1)] = elements(self.shape) // others if others else 0
    new_shape = tuple(sizes)
    if new_shape == self.shape:
        return self
    if any(not size and self.shape[n : n + 1] != (0,) for n, size in enumerate(new_shape)):
        raise Unsupported("a reshape to an empty tensor")  # 0 stands for the size that an axis has
    return d.add("reshape", self, at=at.Reshape(new_shape))


def reshape_alias(
    d: Lowering, self: TensorRef, size: Sequence[int], stride: Sequence[int]
) -> TensorRef:
    return reshape(d, self, size)


def view(d: Lowering, self: TensorRef, size: Sequence[int] | DType) -> TensorRef:
    if not isinstance(size, (list, tuple)):  # the overload view.dtype
        return _view_dtype(d, self, name_of(size))
    return reshape(d, self, size)


def _view_dtype(d: Lowering, self: TensorRef, dtype: str) -> TensorRef:
    """The same bytes in another dtype; its size changes the last axis."""
    old, new = DTYPE_BITS[self.dtype], DTYPE_BITS[dtype]
    if self.rank and old != new:
        shape = (*self.shape[:-1], self.shape[-1] * old // new)
    else:
        shape = self.shape
    return d.add("view", self, at=at.DeclaredOutputs((shape,), (dtype,)))


def view_as(d: Lowering, self: TensorRef, other: TensorRef) -> TensorRef:
    return reshape(d, self, other.shape)


def ravel(d: Lowering, self: TensorRef) -> TensorRef:
    return reshape(d, self, (-1,))


def flatten(
    d: Lowering, self: TensorRef, start_dim: int = 0, end_dim: int = -1, *_: object
) -> TensorRef:
    if not self.shape:
        return reshape(d, self, (1,))
    start, end = start_dim % self.rank, end_dim % self.rank
    if start == end:
        return self
    return d.add("flatten", self, at=at.Flatten(start_dim, end_dim))


def unflatten(
    d: Lowering, self: TensorRef, dim: int, sizes: Sequence[int], *_: object
) -> TensorRef:
    axis = dim % self.rank
    inner = list(sizes)
    if -1 in inner:
        inner[inner.index(-1)] = self.shape[axis] // -elements(tuple(inner))
    return reshape(d, self, (*self.shape[:axis], *inner, *self.shape[axis + 1 :]))


def unsqueeze(d: Lowering, self: TensorRef, dim: int) -> TensorRef:
    axis = dim % (self.rank + 1)
    return reshape(d, self, (*self.shape[:axis], 1, *self.shape[axis:]))


def squeeze(d: Lowering, self: TensorRef, dim: IntOrInts | None = None) -> TensorRef:
    if not self.shape:
        return self
    if dim is None:
        axes = set(range(self.rank))
    else:
        axes = {n % self.rank for n in ([dim] if isinstance(dim, int) else dim)}
    return reshape(d, self, [s for n, s in enumerate(self.shape) if s != 1 or n not in axes])


# Axis order


def permute(d: Lowering, self: TensorRef, dims: Sequence[int]) -> TensorRef:
    """A `reshape` where only axes of size 1 move, else a `permute`."""
    order = tuple(n % self.rank for n in dims) if self.rank else ()
    if order == tuple(range(self.rank)):
        return self
    moved = [n for n in order if self.shape[n] != 1]
    if moved == sorted(moved):
        return reshape(d, self, [self.shape[n] for n in order])
    return d.add("permute", self, at=at.Permute(order))


def transpose(d: Lowering, self: TensorRef, dim0: int, dim1: int) -> TensorRef:
    if not self.rank:
        return self
    order = list(range(self.rank))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return permute(d, self, order)


def t(d: Lowering, self: TensorRef) -> TensorRef:
    return self if self.rank < 2 else transpose(d, self, 0, 1)


def matrix_transpose(d: Lowering, self: TensorRef) -> TensorRef:
    return transpose(d, self, -2, -1)


def numpy_transpose(d: Lowering, self: TensorRef) -> TensorRef:
    return permute(d, self, tuple(reversed(range(self.rank))))


def movedim(d: Lowering, self: TensorRef, source: IntOrInts, destination: IntOrInts) -> TensorRef:
    sources = [source] if isinstance(source, int) else list(source)
    targets = [destination] if isinstance(destination, int) else list(destination)
    sources = [n % self.rank for n in sources]
    left = [n for n in range(self.rank) if n not in sources]
    order: list[int | None] = [None] * self.rank
    for here, there in zip(sources, targets, strict=True):
        order[there % self.rank] = here
    rest = iter(left)
    return permute(d, self, [next(rest) if n is None else n for n in order])


def flip(d: Lowering, self: TensorRef, dims: Sequence[int]) -> TensorRef:
    return d.add("flip", self, at=at.Flip(tuple(axis_of(n, self.rank) for n in dims)))


def rot90(d: Lowering, self: TensorRef, k: int = 1, dims: Sequence[int] = (0, 1)) -> TensorRef:
    """One turn by 90 degrees flips one axis and swaps both."""
    one, two = [axis_of(n, self.rank) for n in dims]
    turns = k % 4
    if turns == 0:
        return d.add("identity", self)
    if turns == 2:
        return flip(d, self, (one, two))
    return transpose(d, flip(d, self, (two if turns == 1 else one,)), one, two)


def channel_shuffle(d: Lowering, self: TensorRef, groups: int) -> TensorRef:
    if self.rank < 3:
        raise Unsupported(f"channel shuffle of a tensor of rank {self.rank}")
    return d.add("channel_shuffle", self, at=at.ChannelShuffle(groups))


# Repetition, padding


def broadcast_to(d: Lowering, self: TensorRef, size: Sequence[int]) -> TensorRef:
    lead = len(size) - self.rank
    wanted = tuple(
        (self.shape[n - lead] if n >= lead else 1) if s == -1 else s for n, s in enumerate(size)
    )
    if wanted == self.shape:
        return self
    if elements(wanted) == elements(self.shape):
        return reshape(d, self, wanted)
    return d.add("expand", self, at=at.Expand(wanted))


def expand(
    d: Lowering, self: TensorRef, size: Sequence[int], *, implicit: bool = False
) -> TensorRef:
    return broadcast_to(d, self, size)


def expand_as(d: Lowering, self: TensorRef, other: TensorRef) -> TensorRef:
    return broadcast_to(d, self, other.shape)


def repeat(d: Lowering, self: TensorRef, repeats: Sequence[int]) -> TensorRef:
    x = reshape(d, self, (1,) * (len(repeats) - self.rank) + self.shape)
    if all(n == 1 for n in repeats):
        return x
    return d.add("repeat", x, at=at.Repeat(tuple(repeats)))


def tile(d: Lowering, self: TensorRef, dims: Sequence[int]) -> TensorRef:
    return repeat(d, self, (1,) * (self.rank - len(dims)) + tuple(dims))


def repeat_interleave(
    d: Lowering,
    self: TensorRef,
    repeats: int | TensorRef,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> TensorRef:
    """An expand along a new axis behind `dim`, then both are joined."""
    if not isinstance(repeats, int):
        raise Unsupported("repeats that depend on data")
    x = self if dim is not None else reshape(d, self, (-1,))
    axis = axis_of(dim or 0, max(x.rank, 1))
    if repeats == 1:
        return x
    apart = reshape(d, x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]))
    wide = broadcast_to(d, apart, (*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :]))
    return reshape(d, wide, (*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :]))


def pad(
    d: Lowering,
    self: TensorRef,
    pad: Sequence[int],
    mode: str = "constant",
    value: Scalar | None = None,
) -> TensorRef:
    pairs = [(0, 0)] * self.rank
    if len(pad) % 2 or len(pad) > 2 * self.rank:
        raise Unsupported(f"{len(pad)} pads for a tensor of rank {self.rank}")
    for n in range(len(pad) // 2):
        pairs[self.rank - 1 - n] = (pad[2 * n], pad[2 * n + 1])
    if not any(map(any, pairs)):
        return d.add("identity", self)
    filling: PadMode = PAD_MODES.get(mode, "constant") if isinstance(mode, str) else "constant"
    if filling != "constant" and self.rank - len(pad) // 2 not in (1, 2):
        raise Unsupported(f"{mode} padding of batch or channels")
    room = [size - max(pair) for pair, size in zip(pairs, self.shape, strict=True) if any(pair)]
    if filling == "reflect" and min(room) < 1:
        raise Unsupported("reflection padding as large as the input")
    if mode == "circular":
        d.source = Source(op=f"{d.source.op}.circular")
    return d.add("pad", self, at=at.Pad(tuple(pairs), filling))


def constant_pad(
    d: Lowering, self: TensorRef, padding: Sequence[int], value: Scalar = 0
) -> TensorRef:
    return pad(d, self, padding)


def pad_with(mode: str) -> OneOutput:
    """A converter of padding in one mode."""

    def convert(d: Lowering, self: TensorRef, padding: Sequence[int]) -> TensorRef:
        return pad(d, self, padding, mode)

    return convert


# Views, copies


def alias(d: Lowering, self: TensorRef, *_: object, **__: object) -> TensorRef:
    """The same tensor, no node: memory formats and autograd flags are not recorded."""
    return self


def clone(d: Lowering, self: TensorRef, *_: object, **__: object) -> TensorRef:
    return d.add("identity", self)


def copy(d: Lowering, self: TensorRef, src: TensorRef, non_blocking: bool = False) -> TensorRef:
    """`src` in the dtype and shape of `self`."""
    y = broadcast_to(d, d.cast(src, self.dtype), self.shape)
    return y if y is not src else d.add("identity", src)


def copy_of(converter: OneOutput) -> OneOutput:
    """A converter of the `_copy` variant of a view operator."""

    def convert(d: Lowering, *args: object, **kwargs: object) -> TensorRef:
        return d.add("identity", converter(d, *args, **kwargs))

    return convert


def as_strided(d: Lowering, self: TensorRef, size: Sequence[int], *_: object) -> TensorRef:
    return d.add("view", self, at=at.DeclaredOutputs((tuple(size),), (self.dtype,)))


def diagonal(
    d: Lowering, self: TensorRef, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> TensorRef:
    axes = [axis_of(n, self.rank) for n in (dim1, dim2)]
    rows, columns = [self.shape[n] for n in axes]
    size = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    rest = [s for n, s in enumerate(self.shape) if n not in axes]
    return as_strided(d, self, (*rest, max(size, 0)))


def triangle(d: Lowering, self: TensorRef, diagonal: int = 0) -> TensorRef:
    return d.add("trilu", self)


def dropout(d: Lowering, input: TensorRef, p: float = 0.5, train: bool = True) -> TensorRef:
    return d.add("dropout", input, at=at.Dropout(p, d.in_place, d.training and not train))


def feature_dropout(d: Lowering, input: TensorRef, p: float = 0.5, train: bool = True) -> TensorRef:
    attrs = at.Dropout(p, d.in_place, d.training and not train, channels=True)
    return d.add("dropout", input, at=attrs)


# Complex numbers


def part(d: Lowering, x: TensorRef) -> TensorRef:
    """The real or the imaginary part of a complex tensor, a view."""
    return d.add("view", x, at=at.DeclaredOutputs((x.shape,), (REAL_PARTS[x.dtype],)))


def real(d: Lowering, self: TensorRef) -> TensorRef:
    return part(d, self) if is_complex(self.dtype) else self


def imag(d: Lowering, self: TensorRef) -> TensorRef:
    if not is_complex(self.dtype):
        raise Refused(f"the imaginary part of {self.dtype}")
    return part(d, self)


def complex_(d: Lowering, real: TensorRef, imag: TensorRef) -> TensorRef:
    if real.dtype != imag.dtype:
        raise Refused(f"complex numbers of mixed dtypes {real.dtype} and {imag.dtype}")
    return d.add("complex", real, imag)


def conj_physical(d: Lowering, self: TensorRef) -> TensorRef:
    """The imaginary part negated."""
    if not is_complex(self.dtype):
        return d.add("identity", self)
    return d.add("complex", part(d, self), d.add("neg", part(d, self)))


TABLE: dict[str, Converter] = {
    "reshape": reshape,
    "_unsafe_view": reshape,
    "_reshape_alias": reshape_alias,
    "view": view,
    "view_as": view_as,
    "reshape_as": view_as,
    "flatten": flatten,
    "unflatten": unflatten,
    "ravel": ravel,
    "unsqueeze": unsqueeze,
    "squeeze": squeeze,
    "permute": permute,
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), transpose),
    "t": t,
    "numpy_T": numpy_transpose,
    **dict.fromkeys(("mT", "adjoint", "matrix_H", "mH"), matrix_transpose),
    "movedim": movedim,
    "moveaxis": movedim,
    "flip": flip,
    "rot90": rot90,
    "channel_shuffle": channel_shuffle,
    "native_channel_shuffle": channel_shuffle,
    "expand": expand,
    "broadcast_to": expand,
    "expand_as": expand_as,
    "repeat": repeat,
    "tile": tile,
    "repeat_interleave": repeat_interleave,
    "pad": pad,
    "constant_pad_nd": constant_pad,
    **{f"reflection_pad{n}d": pad_with("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": pad_with("replicate") for n in (1, 2, 3)},
    "as_strided": as_strided,
    "diagonal": diagonal,
    "triu": triangle,
    "tril": triangle,
    **dict.fromkeys(
        (
            "contiguous", "detach", "alias", "lift_fresh", "lift", "resolve_conj", "resolve_neg",
            "positive", "requires_grad",
        ),
        alias,
    ),
    **dict.fromkeys(("clone", "alias_copy", "detach_copy"), clone),
    "copy": copy,
    "view_copy": copy_of(view),
    "expand_copy": copy_of(expand),
    "permute_copy": copy_of(permute),
    "transpose_copy": copy_of(transpose),
    "t_copy": copy_of(t),
    "squeeze_copy": copy_of(squeeze),
    "unsqueeze_copy": copy_of(unsqueeze),
    "diagonal_copy": copy_of(diagonal),
    "as_strided_copy": copy_of(as_strided),
    **dict.fromkeys(("dropout", "native_dropout", "alpha_dropout"), dropout),
    **dict.fromkeys(("feature_dropout", "feature_alpha_dropout"), feature_dropout),
    "real": real,
    "imag": imag,
    "complex": complex_,
    "conj_physical": conj_physical,
    "_conj_physical": conj_physical,
}  # fmt: skip
