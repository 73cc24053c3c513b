"""Operators that shape, join, cut and fill small arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layerscope.errors import ShapeError
from layerscope.formats.onnx.arrays import (
    Array,
    Attrs,
    Evaluate,
    Given,
    Numbers,
    TooLarge,
    axes_of,
    cast,
    fits,
    parts,
    places,
    range_length,
    reshaped,
    slices,
    spread_to,
    squeezed,
    strides,
    take,
    unsqueezed,
)
from layerscope.formats.onnx.numbers import DTYPES
from layerscope.formats.onnx.values.elementwise import present
from layerscope.graph.types import Shape, elements
from layerscope.ops.spec import axis_of, broadcast


def _concat(told: Attrs, given: Given) -> list[Array]:
    inputs = present(given)
    axis = axis_of(told.get("axis", 1 if told["opset"] < 4 else 0), len(inputs[0].shape))
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


def _slice(told: Attrs, given: Given) -> list[Array]:
    data = present(given)[0]
    axes, starts, ends, steps = slices(told, given[1:], len(data.shape))
    ranges: list[Sequence[int]] = [range(size) for size in data.shape]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        axis = axis_of(axis, len(data.shape))
        ranges[axis] = ranges[axis][start:end:step]
    return [take(data, ranges)]


def _reshape(told: Attrs, given: Given) -> list[Array]:
    inputs = present(given)
    wanted = told["shape"] if "shape" in told else inputs[1].ints()
    shape = reshaped(inputs[0].shape, wanted, bool(told.get("allowzero")))
    return [Array(shape, inputs[0].values, inputs[0].dtype)]


def _squeeze(told: Attrs, given: Given) -> list[Array]:
    x = present(given)[0]
    return [Array(squeezed(x.shape, axes_of(told, given)), x.values, x.dtype)]


def _unsqueeze(told: Attrs, given: Given) -> list[Array]:
    x = present(given)[0]
    return [Array(unsqueezed(x.shape, axes_of(told, given) or ()), x.values, x.dtype)]


def _flatten(told: Attrs, given: Given) -> list[Array]:
    x = present(given)[0]
    axis = told.get("axis", 1)
    axis = axis + len(x.shape) if axis < 0 else axis
    shape = (elements(x.shape[:axis]), elements(x.shape[axis:]))
    return [Array(shape, x.values, x.dtype)]


def _range(told: Attrs, given: Given) -> list[Array]:
    inputs = present(given)
    start, limit, delta = (array.item for array in inputs)
    count = range_length(start, limit, delta)
    fits((count,))
    values = [cast(start + n * delta, inputs[0].dtype) for n in range(count)]
    return [Array((count,), values, inputs[0].dtype)]


def _filled(told: Attrs, given: Given) -> list[Array]:
    value: Array | None = told.get("value")
    shape = fits(present(given)[0].ints())
    if value is None:
        return [Array(shape, [0.0] * elements(shape), "fp32")]
    return [Array(shape, value.values * elements(shape), value.dtype)]


def _expand(told: Attrs, given: Given) -> list[Array]:
    x, sizes = present(given)
    shape = fits(broadcast((x.shape, sizes.ints())))
    return [Array(shape, spread_to(x, shape), x.dtype)]


def _tile(told: Attrs, given: Given) -> list[Array]:
    inputs = present(given)
    x, times = inputs[0], inputs[1].ints()
    if told["opset"] < 6:
        axis = axis_of(int(inputs[2].item), len(x.shape))
        times = tuple(int(inputs[1].item) if n == axis else 1 for n in range(len(x.shape)))
    fits(tuple(size * n for size, n in zip(x.shape, times, strict=True)))
    ranges = [[*range(size)] * n for size, n in zip(x.shape, times, strict=True)]
    return [take(x, ranges)]


def permuted(x: Array, order: Sequence[int]) -> Array:
    """An array with its axes in another order."""
    shape = tuple(x.shape[n] for n in order)
    if len(shape) < 2:
        return Array(shape, x.values, x.dtype)
    steps = [strides(x.shape)[n] for n in order]
    values = [
        x.values[sum(p * s for p, s in zip(place, steps, strict=True))] for place in places(shape)
    ]
    return Array(shape, values, x.dtype)


def _transpose(told: Attrs, given: Given) -> list[Array]:
    x = present(given)[0]
    return [permuted(x, told.get("perm") or tuple(reversed(range(len(x.shape)))))]


def _split(told: Attrs, given: Given) -> list[Array]:
    x = present(given)[0]
    axis = axis_of(told.get("axis", 0), len(x.shape))
    sizes = given[1].ints() if len(given) > 1 and given[1] is not None else told.get("split")
    count: int = told["num_outputs"] if "num_outputs" in told else told["outputs"]
    cut = parts(x.shape[axis], sizes, count)
    if sum(cut) != x.shape[axis] or min(cut, default=0) < 0:
        raise ShapeError(f"an axis of {x.shape[axis]} split into {cut}")
    start, made = 0, []
    for size in cut:
        ranges: list[Sequence[int]] = [range(n) for n in x.shape]
        ranges[axis] = range(start, start + size)
        made.append(take(x, ranges))
        start += size
    return made


def pads_of(told: Attrs, given: Given, rank: int) -> list[tuple[int, int]]:
    """Elements before and behind every axis, as attributes or inputs tell them."""
    pads = told.get("pads") or told.get("paddings")
    if pads is None:
        if len(given) < 2 or given[1] is None:
            raise ShapeError("a Pad without pads")
        pads = given[1].ints()
    axes = given[3].ints() if len(given) > 3 and given[3] is not None else tuple(range(rank))
    if len(pads) != 2 * len(axes):
        raise ShapeError(f"{len(pads)} pads for {len(axes)} axes")
    each = [(0, 0)] * rank
    for n, axis in enumerate(axes):
        each[axis_of(axis, rank)] = (pads[n], pads[n + len(axes)])
    return each


def _source(mode: str, at: int, size: int) -> int | None:
    """The position that a padded one copies; None for one that is filled."""
    if 0 <= at < size:
        return at
    if mode == "constant" or not size:
        return None
    if mode == "edge":
        return min(max(at, 0), size - 1)
    if mode == "wrap":
        return at % size
    if mode != "reflect":
        raise TooLarge
    period = max(2 * size - 2, 1)
    at %= period
    return at if at < size else period - at


def _pad(told: Attrs, given: Given) -> list[Array]:
    x = present(given)[0]
    pads = pads_of(told, given, len(x.shape))
    fill: Any = told.get("value", 0)
    if len(given) > 2 and given[2] is not None:
        fill = given[2].item
    fill = cast(fill, x.dtype)
    mode = told.get("mode", "constant")
    shape = tuple(before + n + behind for (before, behind), n in zip(pads, x.shape, strict=True))
    if min(shape, default=0) < 0:
        raise ShapeError(f"pads {pads} of {x.shape}")
    fits(shape)
    axes = [
        [_source(mode, n - before, size) for n in range(made)]
        for (before, _), size, made in zip(pads, x.shape, shape, strict=True)
    ]
    steps = strides(x.shape)
    values = []
    for place in places(shape):
        at = [axis[p] for axis, p in zip(axes, place, strict=True)]
        start = sum(p * s for p, s in zip(at, steps, strict=True) if p is not None)
        values.append(fill if None in at else x.values[start])
    return [Array(shape, values, x.dtype)]


def _trilu(told: Attrs, given: Given) -> list[Array]:
    x = present(given)[0]
    k = int(given[1].item) if len(given) > 1 and given[1] is not None else 0
    upper = told.get("upper", 1)
    rows, columns = x.shape[-2:]
    values = [
        value
        if ((n % columns) - (n // columns % rows) >= k if upper
            else (n % columns) - (n // columns % rows) <= k)
        else cast(0, x.dtype)
        for n, value in enumerate(x.values)
    ]  # fmt: skip
    return [Array(x.shape, values, x.dtype)]


def _eye_like(told: Attrs, given: Given) -> list[Array]:
    x = present(given)[0]
    rows, columns = x.shape
    dtype = DTYPES.get(told.get("dtype", 0), x.dtype)
    k = told.get("k", 0)
    values = [cast(int(c - r == k), dtype) for r in range(rows) for c in range(columns)]
    return [Array(x.shape, values, dtype)]


def _depth_to_space(told: Attrs, given: Given) -> list[Array]:
    x = present(given)[0]
    n, c, h, w = x.shape
    b = told["blocksize"]
    rows_first = told.get("mode", "DCR") == "DCR"
    shape: Shape = (n, b, b, c // b**2, h, w) if rows_first else (n, c // b**2, b, b, h, w)
    order = (0, 3, 4, 1, 5, 2) if rows_first else (0, 1, 4, 2, 5, 3)
    made = permuted(Array(reshaped(x.shape, shape), x.values, x.dtype), order)
    return [Array((n, c // b**2, h * b, w * b), made.values, x.dtype)]


def _space_to_depth(told: Attrs, given: Given) -> list[Array]:
    x = present(given)[0]
    n, c, h, w = x.shape
    b = told["blocksize"]
    cut = reshaped(x.shape, (n, c, h // b, b, w // b, b))
    made = permuted(Array(cut, x.values, x.dtype), (0, 3, 5, 1, 2, 4))
    return [Array((n, c * b**2, h // b, w // b), made.values, x.dtype)]


def _center_crop_pad(told: Attrs, given: Given) -> list[Array]:
    x, sizes = present(given)
    axes = told.get("axes") or tuple(range(len(x.shape)))
    ranges: list[Sequence[int]] = [range(size) for size in x.shape]
    pads = [(0, 0)] * len(x.shape)
    for axis, size in zip(axes, sizes.ints(), strict=True):
        axis = axis_of(axis, len(x.shape))
        cut, more = max(x.shape[axis] - size, 0), max(size - x.shape[axis], 0)
        ranges[axis] = range(cut // 2, cut // 2 + min(size, x.shape[axis]))
        pads[axis] = (more // 2, more - more // 2)
    both = [before for before, _ in pads] + [behind for _, behind in pads]
    return _pad({"pads": both, "opset": told["opset"]}, [take(x, ranges)])


def _reverse_sequence(told: Attrs, given: Given) -> list[Array]:
    x, lengths = present(given)
    time, batch = told.get("time_axis", 0), told.get("batch_axis", 1)
    steps = strides(x.shape)
    values = []
    for place in places(x.shape):
        at, length = list(place), int(lengths.values[place[batch]])
        at[time] = length - 1 - at[time] if at[time] < length else at[time]
        values.append(x.values[sum(p * s for p, s in zip(at, steps, strict=True))])
    return [Array(x.shape, values, x.dtype)]


def _size(told: Attrs, given: Given) -> list[Array]:
    return [Array((), [elements(present(given)[0].shape)], "int64")]


def _shape(told: Attrs, given: Given) -> list[Array]:
    shape = present(given)[0].shape
    cut = shape[told.get("start", 0) : told.get("end", len(shape))]
    return [Array((len(cut),), list(cut), "int64")]


EVALUATE: dict[str, Evaluate] = {
    "Concat": _concat, "Slice": _slice, "Split": _split, "Reshape": _reshape,
    "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Flatten": _flatten, "Transpose": _transpose,
    "Expand": _expand, "Tile": _tile, "Pad": _pad, "Range": _range, "ConstantOfShape": _filled,
    "Trilu": _trilu, "EyeLike": _eye_like, "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth, "CenterCropPad": _center_crop_pad,
    "ReverseSequence": _reverse_sequence, "Size": _size, "Shape": _shape,
}  # fmt: skip
