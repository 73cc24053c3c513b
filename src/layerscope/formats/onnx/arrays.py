"""Small arrays carried along while a file is read, and how their shapes change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from struct import pack, unpack
from typing import Any

from msgspec import Struct

from layerscope.errors import ShapeError
from layerscope.formats.onnx.numbers import INTEGER_BITS
from layerscope.formats.onnx.tensors import MOST_VALUES
from layerscope.graph.types import Shape, elements
from layerscope.ops.spec import axis_of

Numbers = list[Any]
Attrs = dict[str, Any]  # attributes by name
Slices = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class Array(Struct, frozen=True):
    """Numbers row by row."""

    shape: Shape
    values: Numbers
    dtype: str

    def ints(self) -> tuple[int, ...]:
        """The numbers as a list of whole ones."""
        return tuple(int(value) for value in self.values)

    @property
    def item(self) -> Any:
        """The only number."""
        if len(self.values) != 1:
            raise ShapeError(f"{len(self.values)} numbers where one is expected")
        return self.values[0]


def strides(shape: Shape) -> list[int]:
    """Elements from one position to the next, by axis."""
    steps = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        steps[axis] = steps[axis + 1] * shape[axis + 1]
    return steps


def places(shape: Shape) -> Iterator[tuple[int, ...]]:
    """All positions, the last axis fastest."""
    return product(*map(range, shape))


def fits(shape: Shape) -> Shape:
    if elements(shape) > MOST_VALUES:
        raise TooLarge
    return shape


class TooLarge(Exception):
    """More numbers than are worth carrying, or one that is not defined."""


Given = Sequence[Array | None]  # inputs of an operator; None for one that is left out
Evaluate = Callable[[Attrs, Given], list[Array]]


def cast(value: Any, dtype: str, *, wraps: bool = False) -> Any:
    """A number as its dtype represents it; integers below 64 bits wrap around, as in C.

    A result beyond 64 bits is not carried on: engines wrap it around too, which no shape means.
    """
    if dtype == "bool":
        return bool(value)
    if dtype in INTEGER_BITS:
        bits, signs = INTEGER_BITS[dtype]
        if isinstance(value, float):
            if not math.isfinite(value) or abs(value) >= 2.0**63:
                raise TooLarge
            wraps = wraps or bits < 64
        value = int(value)
        low = -(1 << bits - 1) if signs else 0
        if low <= value < low + (1 << bits):
            return value
        if bits == 64 and not wraps:
            raise TooLarge
        return (value - low) % (1 << bits) + low
    if dtype in PACKED:
        try:
            return unpack(PACKED[dtype], pack(PACKED[dtype], value))[0]
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


def spread_to(array: Array, shape: Shape) -> Numbers:
    """The numbers of an array broadcast to a shape."""
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
        array.values[sum(p * s for p, s in zip(place, steps, strict=True))]
        for place in places(shape)
    ]


def range_length(start: Any, limit: Any, delta: Any) -> int:
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


def take(data: Array, ranges: Sequence[Sequence[int]]) -> Array:
    """The positions named, axis by axis."""
    shape = fits(tuple(map(len, ranges)))
    steps = strides(data.shape)
    values = [
        data.values[sum(p * s for p, s in zip(place, steps, strict=True))]
        for place in product(*ranges)
    ]
    return Array(shape, values, data.dtype)


def slices(told: Attrs, more: Sequence[Array | None], rank: int) -> Slices:
    """Axes, starts, ends and steps of a Slice, as attributes (before opset 10) or inputs."""
    if "starts" in told:
        starts, ends = told["starts"], told["ends"]
        axes, steps = told.get("axes"), None
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
    """A shape with axes of one element put in."""
    rank = len(shape) + len(axes)
    at = {axis_of(axis, rank) for axis in axes}
    if len(at) != len(axes):
        raise ShapeError(f"axes {tuple(axes)}, one of them twice")
    rest = iter(shape)
    return tuple(1 if n in at else next(rest) for n in range(rank))


def squeezed(shape: Shape, axes: Sequence[int] | None) -> Shape:
    """A shape without the axes named, or without all of one."""
    if axes is None:
        return tuple(size for size in shape if size != 1)
    at = {axis_of(axis, len(shape)) for axis in axes}
    if any(shape[n] != 1 for n in at):
        raise ShapeError(f"axes {sorted(at)} of {shape} are not all of one element")
    return tuple(size for n, size in enumerate(shape) if n not in at)


def reshaped(shape: Shape, wanted: Sequence[int], allow_zero: bool = False) -> Shape:
    """The shape that Reshape makes."""
    count = elements(shape)
    made = [
        shape[n] if size == 0 and not allow_zero and n < len(shape) else size
        for n, size in enumerate(wanted)
    ]
    if made.count(-1) > 1 or any(size < -1 for size in made):
        raise ShapeError(f"a shape of {tuple(wanted)}")
    if -1 in made:
        rest = elements(tuple(size for size in made if size != -1))
        if not rest or count % rest:
            raise ShapeError(f"{shape} cannot be reshaped to {tuple(wanted)}")
        made[made.index(-1)] = count // rest
    if elements(tuple(made)) != count:
        raise ShapeError(f"{shape} cannot be reshaped to {tuple(wanted)}")
    return tuple(made)


def axes_of(told: Attrs, inputs: Sequence[Array | None], at: int = 1) -> tuple[int, ...] | None:
    """Axes as an attribute, or since opset 13 as an input."""
    if "axes" in told:
        return tuple(told["axes"])
    given = inputs[at] if len(inputs) > at else None
    return given.ints() if given is not None else None


def parts(length: int, sizes: Sequence[int] | None, count: int) -> tuple[int, ...]:
    """The sizes a Split cuts an axis into; uneven ones leave less for the last."""
    if sizes:
        return tuple(sizes)
    size = -(-length // count)
    made = [size] * (count - 1)
    return (*made, length - sum(made))
