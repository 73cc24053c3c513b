"""Strides of results, inferred from the shapes and strides of the inputs without running PyTorch.

Each rule returns shape and strides of every result, or None where only PyTorch can say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from layerscope.formats.torch.tensors import TensorMeta
from layerscope.formats.torch.torch_types import Args, Kwargs
from layerscope.graph.types import Shape, elements
from layerscope.ops.torch_strides import dense, restride


class Layout(NamedTuple):
    """Shape and strides of a result."""

    shape: Shape
    stride: Shape
    copied: bool = False  # into storage of its own, because no strides give the shape


Layouts = list[Layout] | None


def _sizes(x: TensorMeta, size: Sequence[int]) -> Shape | None:
    """A new shape with -1 replaced."""
    if not isinstance(size, (list, tuple)):
        return None
    sizes = list(size)
    count = elements(x.shape)
    if -1 in sizes:
        others = -elements(tuple(sizes))
        if others < 1 or count % others:
            return None
        sizes[sizes.index(-1)] = count // others
    shape = tuple(sizes)
    return shape if min(shape, default=1) > 0 and elements(shape) == count else None


def _restride(x: TensorMeta, shape: Shape) -> Shape | None:
    """Strides by which the same storage has another shape; None if there are none."""
    if x.contiguous:
        return dense(shape)
    return restride(x.shape, x.stride, shape)


def _view(x: TensorMeta, size: Sequence[int]) -> Layouts:
    shape = _sizes(x, size)
    stride = None if shape is None else _restride(x, shape)
    return None if shape is None or stride is None else [Layout(shape, stride)]


def _reshape(x: TensorMeta, size: Sequence[int]) -> Layouts:
    shape = _sizes(x, size)
    if shape is None:
        return None
    stride = _restride(x, shape)
    return [Layout(shape, dense(shape), True) if stride is None else Layout(shape, stride)]


def _flatten(x: TensorMeta, start_dim: int = 0, end_dim: int = -1) -> Layouts:
    start, end = _axis(start_dim, len(x.shape)), _axis(end_dim, len(x.shape))
    if start is None or end is None or start >= end:
        return None
    return _reshape(x, (*x.shape[:start], elements(x.shape[start : end + 1]), *x.shape[end + 1 :]))


def _contiguous(x: TensorMeta) -> Layouts:
    if _restride(x, (elements(x.shape),)) == (1,):
        return None  # PyTorch returns the input itself
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


def _transpose_matrix(x: TensorMeta) -> Layouts:
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
            return None  # a new axis of size 1: PyTorch chooses its stride
        if n >= lead and wanted not in (own, -1):
            if own != 1:
                return None
            step = 0
        shape.append(own if wanted == -1 else wanted)
        stride.append(step)
    return [Layout(tuple(shape), tuple(stride))]


def _same_layout(x: TensorMeta) -> Layouts:
    return [Layout(x.shape, x.stride)]


VIEWS: dict[str, Callable[..., Layouts]] = {
    "view": _view,
    "reshape": _reshape,
    "flatten": _flatten,
    "contiguous": _contiguous,
    "unflatten": _unflatten,
    "permute": _permute,
    "transpose": _transpose,
    "t": _transpose_matrix,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "select": _select,
    "unbind": _unbind,
    "slice": _slice,
    "split": _split,
    "split_with_sizes": _split_sizes,
    "chunk": _chunk,
    "expand": _expand,
    "detach": _same_layout,
    "alias": _same_layout,
}
# Elementwise operators: the axes of the result are stored in the order of the input's.
BY_ELEMENT = frozenset((
    "add", "sub", "mul", "div", "relu", "gelu", "silu", "sigmoid", "tanh", "hardswish",
    "hardsigmoid", "hardtanh", "exp", "neg", "pow", "sqrt", "rsqrt", "abs", "maximum", "minimum",
))  # fmt: skip


def view_layouts(name: str, x: TensorMeta, args: Args, kwargs: Kwargs) -> Layouts:
    """Shapes and strides of the results of a view, for sizes above zero."""
    rule = VIEWS.get(name)
    if rule is None or 0 in x.shape:
        return None
    try:
        return rule(x, *args, **kwargs)
    except TypeError:  # an overload with other arguments
        return None


def element_stride(shape: Shape, given: Sequence[TensorMeta]) -> Shape | None:
    """Strides of an elementwise result: axes in the order of the first input with all of them.

    Strides of axes of size 1 may differ from PyTorch's; no element depends on them.
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
    strides = [elements(shape)] * len(shape)
    for axis, step in zip(order, dense(tuple([shape[n] for n in order])), strict=True):
        strides[axis] = step
    return tuple(strides)


def joined_stride(shape: Shape, given: Sequence[TensorMeta]) -> Shape | None:
    """Strides of a concatenation: contiguous, unless all inputs are channels-last."""
    for sig in given:
        size, stride = sig.shape, sig.stride
        if len(size) not in (4, 5) or (size[1] > 1 < size[-1] and stride[1] > stride[-1]):
            return dense(shape)
    return None


def _axis(dim: int, rank: int) -> int | None:
    return dim % rank if -rank <= dim < rank else None


def _without(x: TensorMeta, axis: int) -> Layout:
    """Shape and strides without one axis."""
    return Layout(
        (*x.shape[:axis], *x.shape[axis + 1 :]),
        (*x.stride[:axis], *x.stride[axis + 1 :]),
    )
