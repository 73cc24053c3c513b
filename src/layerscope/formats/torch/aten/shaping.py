"""New shapes and orders, copies, number types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layerscope.formats.torch.dtypes import name_of
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.graph import attributes as at
from layerscope.graph.types import DTYPE_BITS, Source, elements
from layerscope.ops.spec import axis_of


def reshape(d: Lowering, self: TensorRef, shape: Sequence[int]) -> TensorRef:
    """A new shape, its -1 worked out; what has the shape already is itself."""
    sizes = list(shape)
    if -1 in sizes:
        known = -elements(tuple(sizes))
        sizes[sizes.index(-1)] = elements(self.shape) // known if known else 0
    made = tuple(sizes)
    if made == self.shape:
        return self
    if 0 in made:
        raise Unsupported("an empty tensor")
    return d.add("reshape", self, at=at.Reshape(made))


def view(d: Lowering, self: TensorRef, size: Any) -> TensorRef:
    if not isinstance(size, (list, tuple)):  # view.dtype
        return _reinterpreted(d, self, name_of(size))
    return reshape(d, self, size)


def _reinterpreted(d: Lowering, self: TensorRef, dtype: str) -> TensorRef:
    """The same bytes as numbers of another dtype: of the last axis more or fewer."""
    old, new = DTYPE_BITS[self.dtype], DTYPE_BITS[dtype]
    if self.rank and old != new:
        shape = (*self.shape[:-1], self.shape[-1] * old // new)
    else:
        shape = self.shape
    return d.add("view", self, at=at.DeclaredOutputs((shape,), (dtype,)))


def view_as(d: Lowering, self: TensorRef, other: TensorRef) -> TensorRef:
    return reshape(d, self, other.shape)


def flatten(
    d: Lowering, self: TensorRef, start_dim: int = 0, end_dim: int = -1, *_: Any
) -> TensorRef:
    if not self.shape:
        return reshape(d, self, (1,))
    start, end = start_dim % self.rank, end_dim % self.rank
    if start == end:
        return self
    return d.add("flatten", self, at=at.Flatten(start_dim, end_dim))


def unflatten(d: Lowering, self: TensorRef, dim: int, sizes: Sequence[int], *_: Any) -> TensorRef:
    axis = dim % self.rank
    inner = list(sizes)
    if -1 in inner:
        inner[inner.index(-1)] = self.shape[axis] // -elements(tuple(inner))
    return reshape(d, self, (*self.shape[:axis], *inner, *self.shape[axis + 1 :]))


def unsqueeze(d: Lowering, self: TensorRef, dim: int) -> TensorRef:
    axis = dim % (self.rank + 1)
    return reshape(d, self, (*self.shape[:axis], 1, *self.shape[axis:]))


def squeeze(d: Lowering, self: TensorRef, dim: Any = None) -> TensorRef:
    if not self.shape:
        return self
    if dim is None:
        axes = set(range(self.rank))
    else:
        axes = {n % self.rank for n in ([dim] if isinstance(dim, int) else dim)}
    return reshape(d, self, [s for n, s in enumerate(self.shape) if s != 1 or n not in axes])


def permute(d: Lowering, self: TensorRef, dims: Sequence[int]) -> TensorRef:
    """A new order of the axes; where only axes of one move, it is a new shape."""
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


def turn(d: Lowering, self: TensorRef) -> TensorRef:
    return self if self.rank < 2 else transpose(d, self, 0, 1)


def matrix_turn(d: Lowering, self: TensorRef) -> TensorRef:
    return transpose(d, self, -2, -1)


def numpy_turn(d: Lowering, self: TensorRef) -> TensorRef:
    return permute(d, self, tuple(reversed(range(self.rank))))


def movedim(d: Lowering, self: TensorRef, source: Any, destination: Any) -> TensorRef:
    sources = [source] if isinstance(source, int) else list(source)
    targets = [destination] if isinstance(destination, int) else list(destination)
    sources = [n % self.rank for n in sources]
    left = [n for n in range(self.rank) if n not in sources]
    order: list[int | None] = [None] * self.rank
    for here, there in zip(sources, targets, strict=True):
        order[there % self.rank] = here
    rest = iter(left)
    return permute(d, self, [next(rest) if n is None else n for n in order])


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
    d: Lowering, self: TensorRef, repeats: Any, dim: int | None = None, *, output_size: Any = None
) -> TensorRef:
    if not isinstance(repeats, int):
        raise Unsupported("repeats that data decides")
    x = self if dim is not None else reshape(d, self, (-1,))
    axis = axis_of(dim or 0, max(x.rank, 1))
    if repeats == 1:
        return x
    apart = reshape(d, x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]))
    wide = (*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :])
    made = broadcast_to(d, apart, wide)
    return reshape(d, made, (*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :]))


def pad(
    d: Lowering, self: TensorRef, pad: Sequence[int], mode: Any = "constant", value: Any = None
) -> TensorRef:
    pairs = [(0, 0)] * self.rank
    if len(pad) % 2 or len(pad) > 2 * self.rank:
        raise Unsupported("padding that does not fit")
    for n in range(len(pad) // 2):
        pairs[self.rank - 1 - n] = (pad[2 * n], pad[2 * n + 1])
    if not any(map(any, pairs)):
        return d.add("identity", self)
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "edge"}
    word: Any = modes.get(mode, "constant") if isinstance(mode, str) else "constant"
    if word != "constant" and self.rank - len(pad) // 2 not in (1, 2):
        raise Unsupported("padding of a batch or of channels")
    room = [size - max(told) for told, size in zip(pairs, self.shape, strict=True) if any(told)]
    if word == "reflect" and min(room) < 1:
        raise Unsupported("more reflected than there is")
    if mode == "circular":
        d.source = Source(op=f"{d.source.op}.circular")
    return d.add("pad", self, at=at.Pad(tuple(pairs), word))


def _padded(mode: str) -> Any:
    return lambda d, self, padding: pad(d, self, padding, mode)


def identity(d: Lowering, self: TensorRef, *_: Any, **__: Any) -> TensorRef:
    """Another name for the same numbers: copies and layouts are PyTorch's own affair."""
    return self


def copied(d: Lowering, self: TensorRef, *_: Any, **__: Any) -> TensorRef:
    return d.add("identity", self)


def to(d: Lowering, self: TensorRef, *told: Any, **more: Any) -> TensorRef:
    """A change of number type; one of device or layout alone changes nothing."""
    for word in (*told, more.get("dtype")):
        if isinstance(word, TensorRef):
            return d.cast(self, word.dtype)
        if str(word).startswith("torch.") and not str(word).startswith(
            ("torch.strided", "torch.preserve", "torch.contig", "torch.channels")
        ):
            return d.cast(self, name_of(word))
    return self


def cast_to(dtype: str) -> Any:
    return lambda d, self, *_: d.cast(self, dtype)


def dropout(d: Lowering, input: TensorRef, p: float = 0.5, train: bool = True) -> TensorRef:
    return d.add("dropout", input, at=at.Dropout(p, d.in_place, d.training and not train))


def channel_dropout(d: Lowering, input: TensorRef, p: float = 0.5, train: bool = True) -> TensorRef:
    told = at.Dropout(p, d.in_place, d.training and not train, channels=True)
    return d.add("dropout", input, at=told)


def roll(d: Lowering, self: TensorRef, shifts: Any, dims: Any = ()) -> TensorRef:
    for axis in (dims,) if isinstance(dims, int) else dims:
        axis_of(axis, self.rank)
    return d.add("roll", self)


def flip(d: Lowering, self: TensorRef, dims: Sequence[int]) -> TensorRef:
    return d.add("flip", self, at=at.Flip(tuple(axis_of(n, self.rank) for n in dims)))


def triangle(d: Lowering, self: TensorRef, diagonal: int = 0) -> TensorRef:
    return d.add("trilu", self)


def rot90(d: Lowering, self: TensorRef, k: int = 1, dims: Sequence[int] = (0, 1)) -> TensorRef:
    """A quarter turn is one axis flipped, and both swapped."""
    one, two = [axis_of(n, self.rank) for n in dims]
    turns = k % 4
    if turns == 0:
        return d.add("identity", self)
    if turns == 2:
        return flip(d, self, (one, two))
    return transpose(d, flip(d, self, (two if turns == 1 else one,)), one, two)


def block_diag(d: Lowering, tensors: Sequence[TensorRef]) -> TensorRef:
    """Matrices written into zeros."""
    sides = [(1, *part.shape)[-2:] if part.rank else (1, 1) for part in tensors]
    shape = (sum([rows for rows, _ in sides]), sum([columns for _, columns in sides]))
    whole = d.add("constant", at=at.DeclaredOutputs((shape,), (tensors[0].dtype,)))
    for part in tensors:
        if 0 not in part.shape:
            whole = d.add("insert", whole, part)
    return whole


def diag_embed(
    d: Lowering, self: TensorRef, offset: int = 0, dim1: int = -2, dim2: int = -1
) -> TensorRef:
    """Rows written as diagonals of zeros."""
    size = self.shape[-1] + abs(offset)
    shape = list(self.shape[:-1])
    for axis in sorted([axis_of(n, self.rank + 1) for n in (dim1, dim2)]):
        shape.insert(axis, size)
    return d.add(
        "insert", d.add("constant", at=at.DeclaredOutputs((tuple(shape),), (self.dtype,))), self
    )


def inserted(d: Lowering, self: TensorRef, src: TensorRef, *_: Any, **__: Any) -> TensorRef:
    """A copy with a part of it written anew."""
    return d.add("insert", d.add("identity", self), d.cast(src, self.dtype))


def _copy_of(words: Any) -> Any:
    """What makes a view, made as a copy."""

    def translate(d: Lowering, *given: Any, **named: Any) -> Any:
        made = words(d, *given, **named)
        return d.add("identity", made) if isinstance(made, TensorRef) else made

    return translate


def viewed(d: Lowering, self: TensorRef, size: Sequence[int], *_: Any) -> TensorRef:
    return d.add("view", self, at=at.DeclaredOutputs((tuple(size),), (self.dtype,)))


def diagonal(
    d: Lowering, self: TensorRef, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> TensorRef:
    axes = [axis_of(n, self.rank) for n in (dim1, dim2)]
    rows, columns = [self.shape[n] for n in axes]
    size = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    rest = [s for n, s in enumerate(self.shape) if n not in axes]
    return viewed(d, self, (*rest, max(size, 0)))


def pixel_shuffle(d: Lowering, self: TensorRef, factor: int) -> TensorRef:
    return _blocks(d, self, at.PixelShuffle(factor))


def pixel_unshuffle(d: Lowering, self: TensorRef, factor: int) -> TensorRef:
    return _blocks(d, self, at.PixelShuffle(factor, inverse=True))


def _blocks(d: Lowering, self: TensorRef, told: at.PixelShuffle) -> TensorRef:
    if self.rank not in (3, 4):
        raise Unsupported(f"blocks of {self.rank} axes")
    if self.rank == 3:
        made = d.add("pixel_shuffle", reshape(d, self, (1, *self.shape)), at=told)
        return reshape(d, made, made.shape[1:])
    return d.add("pixel_shuffle", self, at=told)


def channel_shuffle(d: Lowering, self: TensorRef, groups: int) -> TensorRef:
    if self.rank < 3:
        raise Unsupported(f"channels of {self.rank} axes")
    return d.add("channel_shuffle", self, at=at.ChannelShuffle(groups))


TABLE: dict[str, Any] = {
    "reshape": reshape,
    "_unsafe_view": reshape,
    "_reshape_alias": lambda d, self, size, stride: reshape(d, self, size),
    "view": view,
    "view_as": view_as,
    "reshape_as": view_as,
    "flatten": flatten,
    "unflatten": unflatten,
    "ravel": lambda d, self: reshape(d, self, (-1,)),
    "unsqueeze": unsqueeze,
    "squeeze": squeeze,
    "permute": permute,
    "transpose": transpose,
    "swapaxes": transpose,
    "swapdims": transpose,
    "t": turn,
    "numpy_T": numpy_turn,
    "mT": matrix_turn,
    "adjoint": matrix_turn,
    "matrix_H": matrix_turn,
    "mH": matrix_turn,
    "movedim": movedim,
    "moveaxis": movedim,
    "expand": expand,
    "broadcast_to": expand,
    "expand_as": expand_as,
    "repeat": repeat,
    "tile": tile,
    "repeat_interleave": repeat_interleave,
    "pad": pad,
    "constant_pad_nd": lambda d, self, pad_, value=0: pad(d, self, pad_),
    **{f"reflection_pad{n}d": _padded("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": _padded("replicate") for n in (1, 2, 3)},
    "rot90": rot90,
    "block_diag": block_diag,
    "diag_embed": diag_embed,
    "diagonal": diagonal,
    "as_strided": viewed,
    **dict.fromkeys(("diagonal_scatter", "as_strided_scatter"), inserted),
    "view_copy": _copy_of(view),
    "expand_copy": _copy_of(expand),
    "permute_copy": _copy_of(permute),
    "transpose_copy": _copy_of(transpose),
    "t_copy": _copy_of(turn),
    "squeeze_copy": _copy_of(squeeze),
    "unsqueeze_copy": _copy_of(unsqueeze),
    "diagonal_copy": _copy_of(diagonal),
    "as_strided_copy": _copy_of(viewed),
    "alias_copy": copied,
    "detach_copy": copied,
    "contiguous": identity,
    "detach": identity,
    "alias": identity,
    "lift_fresh": identity,
    "lift": identity,
    "resolve_conj": identity,
    "resolve_neg": identity,
    "positive": identity,
    "requires_grad": identity,
    "clone": copied,
    "to": to,
    "_to_copy": to,
    "type_as": to,
    "float": cast_to("fp32"),
    "half": cast_to("fp16"),
    "long": cast_to("int64"),
    "dropout": dropout,
    "feature_dropout": channel_dropout,
    "alpha_dropout": dropout,
    "feature_alpha_dropout": channel_dropout,
    "roll": roll,
    "flip": flip,
    "triu": triangle,
    "tril": triangle,
    "pixel_shuffle": pixel_shuffle,
    "pixel_unshuffle": pixel_unshuffle,
    "channel_shuffle": channel_shuffle,
    "native_channel_shuffle": channel_shuffle,
}
