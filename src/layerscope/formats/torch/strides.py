"""How results stand in storage, by sizes and strides alone, so that PyTorch need not be asked.

Each answers with sizes and strides of every result, or with None where it is not sure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from layerscope.formats.torch.tensors import TensorMeta, dense
from layerscope.graph.types import Shape, elements
from layerscope.ops.strides import restride


class Layout(NamedTuple):
    """Sizes and strides of a result."""

    shape: Shape
    stride: Shape
    copied: bool = False  # into storage of its own, because no strides would do


Layouts = list[Layout] | None


def _sizes(x: TensorMeta, size: Any) -> Shape | None:
    """A new shape with its -1 worked out."""
    if not isinstance(size, (list, tuple)):
        return None
    sizes = list(size)
    count = elements(x.shape)
    if -1 in sizes:
        known = -elements(tuple(sizes))
        if known < 1 or count % known:
            return None
        sizes[sizes.index(-1)] = count // known
    made = tuple(sizes)
    return made if min(made, default=1) > 0 and elements(made) == count else None


def _restride(x: TensorMeta, made: Shape) -> Shape | None:
    """Strides by which the same storage has another shape; None where no strides do."""
    if x.contiguous:
        return dense(made)
    return restride(x.shape, x.stride, made)


def _view(x: TensorMeta, size: Sequence[int]) -> Layouts:
    made = _sizes(x, size)
    stride = None if made is None else _restride(x, made)
    return None if made is None or stride is None else [Layout(made, stride)]


def _reshape(x: TensorMeta, size: Sequence[int]) -> Layouts:
    made = _sizes(x, size)
    if made is None:
        return None
    stride = _restride(x, made)
    return [Layout(made, dense(made), True) if stride is None else Layout(made, stride)]


def _flatten(x: TensorMeta, start_dim: int = 0, end_dim: int = -1) -> Layouts:
    start, end = _axis(start_dim, len(x.shape)), _axis(end_dim, len(x.shape))
    if start is None or end is None or start >= end:
        return None
    return _reshape(x, (*x.shape[:start], elements(x.shape[start : end + 1]), *x.shape[end + 1 :]))


def _contiguous(x: TensorMeta) -> Layouts:
    if _restride(x, (elements(x.shape),)) == (1,):
        return None  # it is itself
    return [Layout(x.shape, dense(x.shape), True)]


def _unflatten(x: TensorMeta, dim: int, sizes: Sequence[int]) -> Layouts:
    axis = _axis(dim, len(x.shape))
    if axis is None:
        return None
    inner = _sizes(TensorMeta(x.shape[axis : axis + 1], (1,), None, "", ""), sizes)
    if inner is None:
        return None
    return _view(x, (*x.shape[:axis], *inner, *x.shape[axis + 1 :]))


def _permute(x: TensorMeta, dims: Sequence[int]) -> Layouts:
    rank = len(x.shape)
    order = [dim + rank if dim < 0 else dim for dim in dims]
    if sorted(order) != list(range(rank)):
        return None
    return [Layout(tuple([x.shape[n] for n in order]), tuple([x.stride[n] for n in order]))]


def _transpose(x: TensorMeta, dim0: int, dim1: int) -> Layouts:
    one, two = _axis(dim0, len(x.shape)), _axis(dim1, len(x.shape))
    if one is None or two is None:
        return None
    shape, stride = list(x.shape), list(x.stride)
    shape[one], shape[two] = shape[two], shape[one]
    stride[one], stride[two] = stride[two], stride[one]
    return [Layout(tuple(shape), tuple(stride))]


def _turn(x: TensorMeta) -> Layouts:
    return _transpose(x, 0, 1) if len(x.shape) == 2 else None


def _unsqueeze(x: TensorMeta, dim: int) -> Layouts:
    shape, stride = x.shape, x.stride
    axis = _axis(dim, len(shape) + 1)
    if axis is None:
        return None
    step = shape[axis] * stride[axis] if axis < len(shape) else 1
    return [Layout((*shape[:axis], 1, *shape[axis:]), (*stride[:axis], step, *stride[axis:]))]


def _squeeze(x: TensorMeta, dim: int) -> Layouts:
    axis = _axis(dim, len(x.shape)) if isinstance(dim, int) else None
    if axis is None:
        return None
    return [_without(x, axis) if x.shape[axis] == 1 else Layout(x.shape, x.stride)]


def _select(x: TensorMeta, dim: int, index: int) -> Layouts:
    axis = _axis(dim, len(x.shape))
    if axis is None or not isinstance(index, int) or not -x.shape[axis] <= index < x.shape[axis]:
        return None
    return [_without(x, axis)]


def _unbind(x: TensorMeta, dim: int = 0) -> Layouts:
    axis = _axis(dim, len(x.shape))
    return None if axis is None else [_without(x, axis)] * x.shape[axis]


def _slice(
    x: TensorMeta, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Layouts:
    axis = _axis(dim, len(x.shape))
    if axis is None or step < 1:
        return None
    size = len(range(*slice(start, end, step).indices(x.shape[axis])))
    stride = (*x.stride[:axis], x.stride[axis] * step, *x.stride[axis + 1 :])
    return [Layout((*x.shape[:axis], size, *x.shape[axis + 1 :]), stride)] if size else None


def _split(x: TensorMeta, split_size: int, dim: int = 0) -> Layouts:
    axis = _axis(dim, len(x.shape))
    if axis is None or not isinstance(split_size, int) or split_size < 1:
        return None
    count, rest = divmod(x.shape[axis], split_size)
    return _split_sizes(x, [*[split_size] * count, *([rest] if rest else [])], dim)


def _split_sizes(x: TensorMeta, split_sizes: Sequence[int], dim: int = 0) -> Layouts:
    axis = _axis(dim, len(x.shape))
    if axis is None or min(split_sizes, default=0) < 1 or sum(split_sizes) != x.shape[axis]:
        return None
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    return [Layout((*before, size, *after), x.stride) for size in split_sizes]


def _chunk(x: TensorMeta, chunks: int, dim: int = 0) -> Layouts:
    axis = _axis(dim, len(x.shape))
    if axis is None or chunks < 1:
        return None
    return _split(x, -(-x.shape[axis] // chunks), dim)


def _expand(x: TensorMeta, size: Sequence[int], implicit: bool = False) -> Layouts:
    lead = len(size) - len(x.shape)
    if lead < 0:
        return None
    shape, stride = [], []
    for n, wanted in enumerate(size):
        own, step = (x.shape[n - lead], x.stride[n - lead]) if n >= lead else (0, 0)
        if wanted < 1 and (wanted != -1 or n < lead):
            return None
        if n < lead and wanted == 1:
            return None  # its stride is nobody's business
        if n >= lead and wanted not in (own, -1):
            if own != 1:
                return None
            step = 0
        shape.append(own if wanted == -1 else wanted)
        stride.append(step)
    return [Layout(tuple(shape), tuple(stride))]


def _same(x: TensorMeta) -> Layouts:
    return [Layout(x.shape, x.stride)]


VIEWS: dict[str, Callable[..., Layouts]] = {
    "view": _view,
    "reshape": _reshape,
    "flatten": _flatten,
    "contiguous": _contiguous,
    "unflatten": _unflatten,
    "permute": _permute,
    "transpose": _transpose,
    "t": _turn,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "select": _select,
    "unbind": _unbind,
    "slice": _slice,
    "split": _split,
    "split_with_sizes": _split_sizes,
    "chunk": _chunk,
    "expand": _expand,
    "detach": _same,
    "alias": _same,
}
# Worked out number by number: the order of axes in storage is that of what is given.
BY_ELEMENT = frozenset((
    "add", "sub", "mul", "div", "relu", "gelu", "silu", "sigmoid", "tanh", "hardswish",
    "hardsigmoid", "hardtanh", "exp", "neg", "pow", "sqrt", "rsqrt", "abs", "maximum", "minimum",
))  # fmt: skip


def view_layouts(name: str, x: TensorMeta, args: Any, kwargs: Any) -> Layouts:
    """Of the results of a view, of sizes above zero."""
    told = VIEWS.get(name)
    if told is None or 0 in x.shape:
        return None
    try:
        return told(x, *args, **kwargs)
    except TypeError:  # told in a way that has another name
        return None


def element_stride(shape: Shape, given: Sequence[TensorMeta]) -> Shape | None:
    """Strides of what is worked out number by number: axes stand as in the first that has them all.

    Axes of one are nowhere; what is told of them is not what PyTorch would say, and harms nobody.
    """
    first = next((sig for sig in given if sig.shape), None)
    if first is None or first.shape != shape or 0 in shape:
        return None
    long = [n for n, size in enumerate(shape) if size > 1]
    steps = [first.stride[n] for n in long]
    if 0 in steps or len({*steps}) < len(steps):
        return None
    order = sorted(long, key=lambda n: -first.stride[n])
    if order == long:
        return dense(shape)
    made = [elements(shape)] * len(shape)
    for axis, step in zip(order, dense(tuple([shape[n] for n in order])), strict=True):
        made[axis] = step
    return tuple(made)


def joined_stride(shape: Shape, given: Sequence[TensorMeta]) -> Shape | None:
    """Strides of parts joined: dense, unless all have their channels last."""
    for sig in given:
        size, stride = sig.shape, sig.stride
        if len(size) not in (4, 5) or (size[1] > 1 < size[-1] and stride[1] > stride[-1]):
            return dense(shape)
    return None


def _axis(dim: int, rank: int) -> int | None:
    return dim % rank if -rank <= dim < rank else None


def _without(x: TensorMeta, axis: int) -> Layout:
    """Sizes and strides but for one axis."""
    return Layout(
        (*x.shape[:axis], *x.shape[axis + 1 :]),
        (*x.stride[:axis], *x.stride[axis + 1 :]),
    )
