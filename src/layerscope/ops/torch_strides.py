"""Strides of views and of PyTorch's results.

The stride of an axis of size 1 is arbitrary and never compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from layerscope.graph.types import Shape, elements

ShapeStride = tuple[Shape, Shape]  # sizes and strides


@lru_cache(4096)
def dense(shape: Shape) -> Shape:
    """Strides of a contiguous tensor."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size or 1
    strides.reverse()
    return tuple(strides)


def is_dense(shape: Shape, stride: Shape) -> bool:
    """Whether a tensor is contiguous."""
    return all(
        size == 1 or own == step
        for size, own, step in zip(shape, stride, dense(shape), strict=True)
    )


def restride(shape: Shape, stride: Shape, new_shape: Shape) -> Shape | None:
    """Strides of a view with another shape; None if the reshape needs a copy."""
    runs: list[tuple[int, int]] = []  # elements evenly spaced, and the step; innermost first
    for size, step in zip(reversed(shape), reversed(stride), strict=True):
        if size == 1:
            continue
        if runs and step == runs[-1][0] * runs[-1][1]:
            runs[-1] = (runs[-1][0] * size, runs[-1][1])
        else:
            runs.append((size, step))
    strides = []
    left, step = 1, 1
    for size in reversed(new_shape):
        if left == 1 and size > 1:
            left, step = runs.pop(0)
        if left % size:
            return None
        strides.append(step)
        left, step = left // size, step * size
    return tuple(reversed(strides))


def expanded(shape: Shape, stride: Shape, wide: Shape) -> Shape:
    """Strides of a broadcast view."""
    lead = len(wide) - len(shape)
    steps = [0 if own == 1 != to else step
             for own, to, step in zip(shape, wide[lead:], stride, strict=True)]  # fmt: skip
    return (*[0] * lead, *steps)


def channels_last(shape: Shape, stride: Shape) -> bool:
    """Whether PyTorch treats a tensor as channels_last."""
    if len(shape) not in (4, 5) or stride[1] == 0:
        return False
    least = 0
    for axis in (1, *reversed(range(2, len(shape))), 0):
        if stride[axis] < least or (axis == 0 and least == stride[1]):
            return False
        least = stride[axis] * max(shape[axis], 1)
    return True


def in_order(shape: Shape, order: Sequence[int]) -> Shape:
    """Strides of a dense tensor whose axes are stored in this order, outermost first."""
    stride = [0] * len(shape)
    for axis, step in zip(order, dense(tuple([shape[n] for n in order])), strict=True):
        stride[axis] = step
    return tuple(stride)


def elementwise(shape: Shape, given: Sequence[ShapeStride]) -> Shape:
    """Strides of a TensorIterator result: axes ordered by the strides of the operands."""
    operands = [expanded(own, stride, shape) for own, stride in given]
    if all(own == shape and is_dense(own, stride) for own, stride in given):
        return dense(shape)
    order = list(reversed(range(len(shape))))  # innermost first
    for start in range(1, len(order)):
        here = start
        for there in reversed(range(start)):
            swap = _swap(shape, operands, order[there], order[here])
            if swap < 0:
                break
            if swap > 0:
                order[there], order[here] = order[here], order[there]
                here = there
    return in_order(shape, order[::-1])


def _swap(shape: Shape, operands: Sequence[Shape], inner: int, outer: int) -> int:
    """1 if the axes must be swapped, -1 if they are in order, 0 if no operand decides."""
    for stride in operands:
        a, b = stride[inner], stride[outer]
        if a == 0 or b == 0:
            continue
        if a != b:
            return 1 if a > b else -1
        if shape[inner] > shape[outer]:
            return 1
    return 0


def storage_elements(shape: Shape, stride: Shape) -> int:
    """Elements of the storage that a view spans."""
    if not elements(shape):
        return 0
    return 1 + sum([(size - 1) * step for size, step in zip(shape, stride, strict=True)])
