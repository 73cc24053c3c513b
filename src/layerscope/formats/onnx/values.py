"""What operators make of small arrays: what shapes are worked out from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from layerscope.errors import ShapeError
from layerscope.formats.onnx.arrays import (
    Array,
    Numbers,
    Told,
    TooLarge,
    axes_of,
    cast,
    fits,
    parts,
    places,
    reshaped,
    slices,
    spread_to,
    squeezed,
    strides,
    take,
    unsqueezed,
)
from layerscope.formats.onnx.numbers import DTYPES, FLOATS, WHOLE
from layerscope.graph.types import elements
from layerscope.ops.rule import axis_of, broadcast


def _each(function: Callable[..., Any], dtype: str = "") -> Evaluate:
    def evaluate(told: Told, inputs: Sequence[Array]) -> list[Array]:
        shape = fits(broadcast(tuple(array.shape for array in inputs)))
        made = dtype or inputs[0].dtype
        spread = [spread_to(array, shape) for array in inputs]
        try:
            values = [cast(function(*numbers), made) for numbers in zip(*spread, strict=True)]
        except (ArithmeticError, ValueError):
            raise TooLarge from None
        return [Array(shape, values, made)]

    return evaluate


def _folded(function: Callable[[Any, Any], Any]) -> Evaluate:
    def evaluate(told: Told, inputs: Sequence[Array]) -> list[Array]:
        made = inputs[0]
        for other in inputs[1:]:
            made = _each(function)(told, (made, other))[0]
        return [made]

    return evaluate


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)  # towards zero
        return quotient if (a < 0) == (b < 0) else -quotient
    return a / b


def _modulo(told: Told, inputs: Sequence[Array]) -> list[Array]:
    return _each(math.fmod if told.get("fmod") else lambda a, b: a % b)(told, inputs)


def _power(a: Any, b: Any) -> Any:
    if abs(b) > 64:
        raise ValueError
    return a**b


def _gather(told: Told, inputs: Sequence[Array]) -> list[Array]:
    data, indices = inputs
    axis = axis_of(told.get("axis", 0), len(data.shape))
    size = data.shape[axis]
    shape = fits((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))
    inner, outer = elements(data.shape[axis + 1 :]), elements(data.shape[:axis])
    values: Numbers = []
    for block in range(outer):
        for index in indices.values:
            if not -size <= index < size:
                raise ShapeError(f"index {index} into an axis of {size}")
            start = (block * size + index % size) * inner
            values.extend(data.values[start : start + inner])
    return [Array(shape, values, data.dtype)]


def _concat(told: Told, inputs: Sequence[Array]) -> list[Array]:
    axis = axis_of(told.get("axis", 0), len(inputs[0].shape))
    first = inputs[0].shape
    length = sum(array.shape[axis] for array in inputs)
    shape = fits((*first[:axis], length, *first[axis + 1 :]))
    values: Numbers = []
    for block in range(elements(first[:axis])):
        for array in inputs:
            run = elements(array.shape[axis:])
            values.extend(array.values[block * run : block * run + run])
    if len(values) != elements(shape):
        raise ShapeError("joined arrays do not agree")
    return [Array(shape, values, inputs[0].dtype)]


def _slice(told: Told, inputs: Sequence[Array]) -> list[Array]:
    data = inputs[0]
    axes, starts, ends, steps = slices(told, inputs[1:], len(data.shape))
    ranges: list[Sequence[int]] = [range(size) for size in data.shape]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        axis = axis_of(axis, len(data.shape))
        ranges[axis] = ranges[axis][start:end:step]
    return [take(data, ranges)]


def _reshape(told: Told, inputs: Sequence[Array]) -> list[Array]:
    wanted = told["shape"] if "shape" in told else inputs[1].ints()
    shape = reshaped(inputs[0].shape, wanted, bool(told.get("allowzero")))
    return [Array(shape, inputs[0].values, inputs[0].dtype)]


def _squeeze(told: Told, inputs: Sequence[Array]) -> list[Array]:
    shape = squeezed(inputs[0].shape, axes_of(told, inputs))
    return [Array(shape, inputs[0].values, inputs[0].dtype)]


def _unsqueeze(told: Told, inputs: Sequence[Array]) -> list[Array]:
    shape = unsqueezed(inputs[0].shape, axes_of(told, inputs) or ())
    return [Array(shape, inputs[0].values, inputs[0].dtype)]


def _flatten(told: Told, inputs: Sequence[Array]) -> list[Array]:
    x = inputs[0]
    axis = told.get("axis", 1)
    axis = axis + len(x.shape) if axis < 0 else axis
    shape = (elements(x.shape[:axis]), elements(x.shape[axis:]))
    return [Array(shape, x.values, x.dtype)]


def _identity(told: Told, inputs: Sequence[Array]) -> list[Array]:
    return [inputs[0]]


def _cast(told: Told, inputs: Sequence[Array]) -> list[Array]:
    dtype = DTYPES.get(told.get("to", 0), "")
    if dtype not in FLOATS and dtype not in WHOLE and dtype != "bool":
        raise TooLarge
    x = inputs[0]
    return [Array(x.shape, [cast(value, dtype) for value in x.values], dtype)]


def _cast_like(told: Told, inputs: Sequence[Array]) -> list[Array]:
    x, like = inputs
    return [Array(x.shape, [cast(value, like.dtype) for value in x.values], like.dtype)]


def _range(told: Told, inputs: Sequence[Array]) -> list[Array]:
    start, limit, delta = (array.item for array in inputs)
    if not delta:
        raise ShapeError("a range of steps of zero")
    count = max(math.ceil((limit - start) / delta), 0)
    fits((count,))
    values = [cast(start + n * delta, inputs[0].dtype) for n in range(count)]
    return [Array((count,), values, inputs[0].dtype)]


def _filled(told: Told, inputs: Sequence[Array]) -> list[Array]:
    value: Array | None = told.get("value")
    shape = fits(inputs[0].ints())
    if value is None:
        return [Array(shape, [0.0] * elements(shape), "fp32")]
    return [Array(shape, value.values * elements(shape), value.dtype)]


def _expand(told: Told, inputs: Sequence[Array]) -> list[Array]:
    shape = fits(broadcast((inputs[0].shape, inputs[1].ints())))
    return [Array(shape, spread_to(inputs[0], shape), inputs[0].dtype)]


def _tile(told: Told, inputs: Sequence[Array]) -> list[Array]:
    x, times = inputs[0], inputs[1].ints()
    fits(tuple(size * n for size, n in zip(x.shape, times, strict=True)))
    ranges = [[*range(size)] * n for size, n in zip(x.shape, times, strict=True)]
    return [take(x, ranges)]


def _transpose(told: Told, inputs: Sequence[Array]) -> list[Array]:
    x = inputs[0]
    order = told.get("perm") or tuple(reversed(range(len(x.shape))))
    shape = tuple(x.shape[n] for n in order)
    steps = [strides(x.shape)[n] for n in order]
    values = [
        x.values[sum(p * s for p, s in zip(place, steps, strict=True))] for place in places(shape)
    ]
    return [Array(shape, values, x.dtype)]


def _reduced(function: Callable[[Numbers], Any]) -> Evaluate:
    def evaluate(told: Told, inputs: Sequence[Array]) -> list[Array]:
        x = inputs[0]
        axes = axes_of(told, inputs)
        if not axes:
            if told.get("noop_with_empty_axes"):
                return [x]
            axes = tuple(range(len(x.shape)))
        at = {axis_of(axis, len(x.shape)) for axis in axes}
        keep = told.get("keepdims", 1)
        groups: dict[tuple[int, ...], Numbers] = {}
        for place, value in zip(places(x.shape), x.values, strict=True):
            key = tuple(0 if n in at else p for n, p in enumerate(place))
            groups.setdefault(key, []).append(value)
        shape = tuple(1 if n in at else size for n, size in enumerate(x.shape))
        values = [cast(function(group), x.dtype) for group in groups.values()]
        if not keep:
            shape = tuple(size for n, size in enumerate(shape) if n not in at)
        return [Array(shape, values, x.dtype)]

    return evaluate


def _where(told: Told, inputs: Sequence[Array]) -> list[Array]:
    return _each(lambda c, a, b: a if c else b, inputs[1].dtype)(told, inputs)


def _scatter_nd(told: Told, inputs: Sequence[Array]) -> list[Array]:
    data, indices, updates = inputs
    if told.get("reduction", "none") != "none":
        raise TooLarge
    depth = indices.shape[-1]
    run = elements(data.shape[depth:])
    steps = strides(data.shape)
    values = list(data.values)
    for n in range(elements(indices.shape[:-1])):
        place = indices.values[n * depth : n * depth + depth]
        start = sum((p % size) * s for p, size, s in zip(place, data.shape, steps, strict=False))
        values[start : start + run] = updates.values[n * run : n * run + run]
    return [Array(data.shape, values, data.dtype)]


def _scatter_elements(told: Told, inputs: Sequence[Array]) -> list[Array]:
    data, indices, updates = inputs
    if told.get("reduction", "none") != "none":
        raise TooLarge
    axis = axis_of(told.get("axis", 0), len(data.shape))
    steps = strides(data.shape)
    values = list(data.values)
    for place, index, update in zip(
        places(indices.shape), indices.values, updates.values, strict=True
    ):
        at = list(place)
        at[axis] = index % data.shape[axis]
        values[sum(p * s for p, s in zip(at, steps, strict=True))] = update
    return [Array(data.shape, values, data.dtype)]


def _non_zero(told: Told, inputs: Sequence[Array]) -> list[Array]:
    x = inputs[0]
    found = [place for place, value in zip(places(x.shape), x.values, strict=True) if value]
    rank = len(x.shape)
    return [Array((rank, len(found)), [p[n] for n in range(rank) for p in found], "int64")]


def _cum_sum(told: Told, inputs: Sequence[Array]) -> list[Array]:
    x, axis = inputs[0], axis_of(int(inputs[1].item), len(inputs[0].shape))
    if told.get("exclusive") or told.get("reverse"):
        raise TooLarge
    step = strides(x.shape)[axis]
    values = list(x.values)
    for n, place in enumerate(places(x.shape)):
        if place[axis]:
            values[n] = cast(values[n - step] + values[n], x.dtype)
    return [Array(x.shape, values, x.dtype)]


def _split(told: Told, inputs: Sequence[Array]) -> list[Array]:
    x = inputs[0]
    axis = axis_of(told.get("axis", 0), len(x.shape))
    given = inputs[1].ints() if len(inputs) > 1 else told.get("split")
    sizes = parts(x.shape[axis], given, told["outputs"])
    start, made = 0, []
    for size in sizes:
        ranges: list[Sequence[int]] = [range(n) for n in x.shape]
        ranges[axis] = range(start, start + size)
        made.append(take(x, ranges))
        start += size
    return made


def _pad(told: Told, inputs: Sequence[Array]) -> list[Array]:
    x = inputs[0]
    if told.get("mode", "constant") != "constant" or len(inputs) > 3:
        raise TooLarge
    pads = told["pads"] if "pads" in told else inputs[1].ints()
    fill = inputs[2].item if len(inputs) > 2 else cast(0, x.dtype)
    rank = len(x.shape)
    shape = fits(tuple(pads[n] + x.shape[n] + pads[n + rank] for n in range(rank)))
    steps = strides(x.shape)
    values = []
    for place in places(shape):
        at = [p - pads[n] for n, p in enumerate(place)]
        inside = all(0 <= p < size for p, size in zip(at, x.shape, strict=True))
        where = sum(p * s for p, s in zip(at, steps, strict=True))
        values.append(x.values[where] if inside else fill)
    return [Array(shape, values, x.dtype)]


def _round(value: float) -> float:
    return float(round(value))  # half to even, as ONNX has it


Evaluate = Callable[[Told, Sequence[Array]], list[Array]]

EVALUATE: dict[str, Evaluate] = {
    "Identity": _identity, "Cast": _cast, "CastLike": _cast_like,
    "Gather": _gather, "Concat": _concat, "Slice": _slice, "Split": _split,
    "Reshape": _reshape, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Flatten": _flatten,
    "Transpose": _transpose, "Expand": _expand, "Tile": _tile, "Pad": _pad,
    "Range": _range, "ConstantOfShape": _filled, "Where": _where,
    "ScatterND": _scatter_nd, "ScatterElements": _scatter_elements, "NonZero": _non_zero,
    "CumSum": _cum_sum,
    "Add": _each(lambda a, b: a + b), "Sub": _each(lambda a, b: a - b),
    "Mul": _each(lambda a, b: a * b), "Div": _each(_divide), "Mod": _modulo,
    "Pow": _each(_power),
    "Sum": _folded(lambda a, b: a + b), "Max": _folded(max), "Min": _folded(min),
    "Neg": _each(lambda a: -a), "Abs": _each(abs), "Floor": _each(math.floor),
    "Ceil": _each(math.ceil), "Round": _each(_round), "Sqrt": _each(math.sqrt),
    "Reciprocal": _each(lambda a: 1 / a), "Sign": _each(lambda a: (a > 0) - (a < 0)),
    "Exp": _each(math.exp), "Log": _each(math.log),
    "Equal": _each(lambda a, b: a == b, "bool"), "Greater": _each(lambda a, b: a > b, "bool"),
    "Less": _each(lambda a, b: a < b, "bool"),
    "GreaterOrEqual": _each(lambda a, b: a >= b, "bool"),
    "LessOrEqual": _each(lambda a, b: a <= b, "bool"),
    "And": _each(lambda a, b: a and b, "bool"), "Or": _each(lambda a, b: a or b, "bool"),
    "Xor": _each(lambda a, b: bool(a) != bool(b), "bool"), "Not": _each(lambda a: not a, "bool"),
    "ReduceProd": _reduced(math.prod), "ReduceSum": _reduced(sum), "ReduceMax": _reduced(max),
    "ReduceMin": _reduced(min), "ReduceMean": _reduced(lambda many: _divide(sum(many), len(many))),
}  # fmt: skip
