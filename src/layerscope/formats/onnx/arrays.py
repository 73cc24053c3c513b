"""Small arrays of constant folding, and the shape functions of some operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from struct import pack, unpack
from typing import Any

from msgspec import Struct

from layerscope.errors import ShapeError
from layerscope.formats.onnx.dtypes import INTEGER_BITS, Number
from layerscope.formats.onnx.tensors import MOST_VALUES
from layerscope.graph.types import Shape, elements
from layerscope.ops.spec import axis_of

Numbers = list[Number]
Attrs = dict[str, Any]  # attributes by name
Slices = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class SmallArray(Struct, frozen=True):
    """A constant tensor of few elements, row by row."""

    shape: Shape
    values: Numbers
    dtype: str

    def ints(self) -> tuple[int, ...]:
        """The elements as integers."""
        return tuple(int(value) for value in self.values)

    @property
    def item(self) -> Number:
        """The only element."""
        if len(self.values) != 1:
            raise ShapeError(f"{len(self.values)} numbers where one is expected")
        return self.values[0]


def strides(shape: Shape) -> list[int]:
    """Elements from one position to the next, by axis."""
    steps = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        steps[axis] = steps[axis + 1] * shape[axis + 1]
    return steps


def positions(shape: Shape) -> Iterator[tuple[int, ...]]:
    """All positions, the last axis fastest."""
    return product(*map(range, shape))


def fits(shape: Shape) -> Shape:
    """The shape, if an array of it is small enough to be folded."""
    if elements(shape) > MOST_VALUES:
        raise NotFoldable
    return shape


class NotFoldable(Exception):
    """A result that is not folded: it is too large, or one element is not defined."""


Given = Sequence[SmallArray | None]  # inputs of an operator; None for one that is left out
Evaluate = Callable[[Attrs, Given], list[SmallArray]]


def cast(value: Number, dtype: str, *, wraps: bool = False) -> Number:
    """A number as its dtype represents it; integers below 64 bits wrap around, as in C.

    A result beyond 64 bits is not folded: engines wrap it around too, but no shape is meant so.
    """
    if dtype == "bool":
        return bool(value)
    if dtype in INTEGER_BITS:
        bits, signs = INTEGER_BITS[dtype]
        if isinstance(value, float):
            if not math.isfinite(value) or abs(value) >= 2.0**63:
                raise NotFoldable
            wraps = wraps or bits < 64
        value = int(value)
        low = -(1 << bits - 1) if signs else 0
        if low <= value < low + (1 << bits):
            return value
        if bits == 64 and not wraps:
            raise NotFoldable
        return (value - low) % (1 << bits) + low
    if dtype in PACKED:
        try:
            rounded: float = unpack(PACKED[dtype], pack(PACKED[dtype], value))[0]
            return rounded
        except OverflowError:
            return math.copysign(math.inf, value)
    if dtype == "bf16":
        return _bfloat(cast(value, "fp32"))
    return float(value)


PACKED = {"fp32": "<f", "fp16": "<e"}


def _bfloat(value: float) -> float:
    """The nearest number with the upper 16 bits of an fp32; half to even."""
    if not math.isfinite(value):
        return value
    (bits,) = unpack("<I", pack("<f", value))
    bits += 0x7FFF + (bits >> 16 & 1)
    rounded: float = unpack("<f", pack("<I", bits & 0xFFFF0000))[0]
    return rounded


def broadcast_to(array: SmallArray, shape: Shape) -> Numbers:
    """Elements of an array broadcast to a shape."""
    if array.shape == shape:
        return array.values
    if len(array.values) == 1:
        return array.values * elements(shape)
    lead = len(shape) - len(array.shape)
    steps = [0] * lead + [
        0 if size == 1 else step
        for size, step in zip(array.shape, strides(array.shape), strict=True)
    ]
    return [
        array.values[sum(p * s for p, s in zip(position, steps, strict=True))]
        for position in positions(shape)
    ]


def range_length(start: Number, limit: Number, delta: Number) -> int:
    """The number of elements of a Range."""
    if not delta:
        raise ShapeError("a range of steps of zero")
    if any(
        isinstance(value, float) and not math.isfinite(value) for value in (start, limit, delta)
    ):
        raise ShapeError(f"a range from {start} to {limit} in steps of {delta}")
    if isinstance(start, int) and isinstance(limit, int) and isinstance(delta, int):
        return max(-((start - limit) // delta), 0)
    count: int = math.ceil((limit - start) / delta)
    return max(count, 0)


def take(data: SmallArray, ranges: Sequence[Sequence[int]]) -> SmallArray:
    """The elements at these positions of every axis."""
    shape = fits(tuple(map(len, ranges)))
    steps = strides(data.shape)
    values = [
        data.values[sum(p * s for p, s in zip(position, steps, strict=True))]
        for position in product(*ranges)
    ]
    return SmallArray(shape, values, data.dtype)


def slices(attrs: Attrs, more: Sequence[SmallArray | None], rank: int) -> Slices:
    """Axes, starts, ends and steps of a Slice, as attributes (before opset 10) or inputs."""
    if "starts" in attrs:
        starts, ends = attrs["starts"], attrs["ends"]
        axes, steps = attrs.get("axes"), None
    else:
        lists = [array.ints() if array is not None else None for array in more]
        starts, ends, axes, steps = (*lists, None, None)[:4]
    if starts is None or ends is None:
        raise ShapeError("a slice without start or end")
    axes = tuple(axes) if axes is not None else tuple(range(len(starts)))
    steps = tuple(steps) if steps is not None else (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise ShapeError("a slice whose starts, ends, axes and steps do not agree")
    return axes, tuple(starts), tuple(ends), steps


def unsqueezed(shape: Shape, axes: Sequence[int]) -> Shape:
    """A shape with axes of one element inserted."""
    rank = len(shape) + len(axes)
    at = {axis_of(axis, rank) for axis in axes}
    if len(at) != len(axes):
        raise ShapeError(f"axes {tuple(axes)}, one of them twice")
    rest = iter(shape)
    return tuple(1 if n in at else next(rest) for n in range(rank))


def squeezed(shape: Shape, axes: Sequence[int] | None) -> Shape:
    """A shape without these axes, or without all axes of one element."""
    if axes is None:
        return tuple(size for size in shape if size != 1)
    at = {axis_of(axis, len(shape)) for axis in axes}
    if any(shape[n] != 1 for n in at):
        raise ShapeError(f"axes {sorted(at)} of {shape} are not all of one element")
    return tuple(size for n, size in enumerate(shape) if n not in at)


def reshaped(shape: Shape, wanted: Sequence[int], allow_zero: bool = False) -> Shape:
    """The output shape of a Reshape."""
    count = elements(shape)
    result = [
        shape[n] if size == 0 and not allow_zero and n < len(shape) else size
        for n, size in enumerate(wanted)
    ]
    if result.count(-1) > 1 or any(size < -1 for size in result):
        raise ShapeError(f"a shape of {tuple(wanted)}")
    if -1 in result:
        rest = elements(tuple(size for size in result if size != -1))
        if not rest or count % rest:
            raise ShapeError(f"{shape} cannot be reshaped to {tuple(wanted)}")
        result[result.index(-1)] = count // rest
    if elements(tuple(result)) != count:
        raise ShapeError(f"{shape} cannot be reshaped to {tuple(wanted)}")
    return tuple(result)


def axes_of(
    attrs: Attrs, inputs: Sequence[SmallArray | None], at: int = 1
) -> tuple[int, ...] | None:
    """Axes as an attribute, or since opset 13 as an input."""
    if "axes" in attrs:
        return tuple(attrs["axes"])
    given = inputs[at] if len(inputs) > at else None
    return given.ints() if given is not None else None


def parts(length: int, sizes: Sequence[int] | None, count: int) -> tuple[int, ...]:
    """The sizes into which a Split cuts an axis; the last one may be smaller."""
    if sizes:
        return tuple(sizes)
    size = -(-length // count)
    result = [size] * (count - 1)
    return (*result, length - sum(result))
