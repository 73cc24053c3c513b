"""Reshape, concatenate, slice and pad small arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layerscope.errors import ShapeError
from layerscope.formats.onnx.arrays import (
    Attrs,
    Evaluate,
    Given,
    NotFoldable,
    Numbers,
    SmallArray,
    axes_of,
    broadcast_to,
    cast,
    fits,
    parts,
    positions,
    range_length,
    reshaped,
    slices,
    squeezed,
    strides,
    take,
    unsqueezed,
)
from layerscope.formats.onnx.dtypes import DTYPES
from layerscope.formats.onnx.folding.elementwise import present
from layerscope.graph.types import Shape, elements
from layerscope.ops.spec import axis_of, broadcast


def _concat(attrs: Attrs, given: Given) -> list[SmallArray]:
    inputs = present(given)
    axis = axis_of(attrs.get("axis", 1 if attrs["opset"] < 4 else 0), len(inputs[0].shape))
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
    return [SmallArray(shape, values, inputs[0].dtype)]


def _slice(attrs: Attrs, given: Given) -> list[SmallArray]:
    data = present(given)[0]
    axes, starts, ends, steps = slices(attrs, given[1:], len(data.shape))
    ranges: list[Sequence[int]] = [range(size) for size in data.shape]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        axis = axis_of(axis, len(data.shape))
        ranges[axis] = ranges[axis][start:end:step]
    return [take(data, ranges)]


def _reshape(attrs: Attrs, given: Given) -> list[SmallArray]:
    inputs = present(given)
    wanted = attrs["shape"] if "shape" in attrs else inputs[1].ints()
    shape = reshaped(inputs[0].shape, wanted, bool(attrs.get("allowzero")))
    return [SmallArray(shape, inputs[0].values, inputs[0].dtype)]


def _squeeze(attrs: Attrs, given: Given) -> list[SmallArray]:
    x = present(given)[0]
    return [SmallArray(squeezed(x.shape, axes_of(attrs, given)), x.values, x.dtype)]


def _unsqueeze(attrs: Attrs, given: Given) -> list[SmallArray]:
    x = present(given)[0]
    return [SmallArray(unsqueezed(x.shape, axes_of(attrs, given) or ()), x.values, x.dtype)]


def _flatten(attrs: Attrs, given: Given) -> list[SmallArray]:
    x = present(given)[0]
    axis = attrs.get("axis", 1)
    axis = axis + len(x.shape) if axis < 0 else axis
    shape = (elements(x.shape[:axis]), elements(x.shape[axis:]))
    return [SmallArray(shape, x.values, x.dtype)]


def _range(attrs: Attrs, given: Given) -> list[SmallArray]:
    inputs = present(given)
    start, limit, delta = (array.item for array in inputs)
    count = range_length(start, limit, delta)
    fits((count,))
    values = [cast(start + n * delta, inputs[0].dtype) for n in range(count)]
    return [SmallArray((count,), values, inputs[0].dtype)]


def _filled(attrs: Attrs, given: Given) -> list[SmallArray]:
    value: SmallArray | None = attrs.get("value")
    shape = fits(present(given)[0].ints())
    if value is None:
        return [SmallArray(shape, [0.0] * elements(shape), "fp32")]
    return [SmallArray(shape, value.values * elements(shape), value.dtype)]


def _expand(attrs: Attrs, given: Given) -> list[SmallArray]:
    x, sizes = present(given)
    shape = fits(broadcast((x.shape, sizes.ints())))
    return [SmallArray(shape, broadcast_to(x, shape), x.dtype)]


def _tile(attrs: Attrs, given: Given) -> list[SmallArray]:
    inputs = present(given)
    x, times = inputs[0], inputs[1].ints()
    if attrs["opset"] < 6:
        axis = axis_of(int(inputs[2].item), len(x.shape))
        times = tuple(int(inputs[1].item) if n == axis else 1 for n in range(len(x.shape)))
    fits(tuple(size * n for size, n in zip(x.shape, times, strict=True)))
    ranges = [[*range(size)] * n for size, n in zip(x.shape, times, strict=True)]
    return [take(x, ranges)]


def permuted(x: SmallArray, order: Sequence[int]) -> SmallArray:
    """An array with its axes in another order."""
    shape = tuple(x.shape[n] for n in order)
    if len(shape) < 2:
        return SmallArray(shape, x.values, x.dtype)
    steps = [strides(x.shape)[n] for n in order]
    values = [
        x.values[sum(p * s for p, s in zip(position, steps, strict=True))]
        for position in positions(shape)
    ]
    return SmallArray(shape, values, x.dtype)


def _transpose(attrs: Attrs, given: Given) -> list[SmallArray]:
    x = present(given)[0]
    return [permuted(x, attrs.get("perm") or tuple(reversed(range(len(x.shape)))))]


def _split(attrs: Attrs, given: Given) -> list[SmallArray]:
    x = present(given)[0]
    axis = axis_of(attrs.get("axis", 0), len(x.shape))
    sizes = given[1].ints() if len(given) > 1 and given[1] is not None else attrs.get("split")
    count: int = attrs["num_outputs"] if "num_outputs" in attrs else attrs["outputs"]
    cut = parts(x.shape[axis], sizes, count)
    if sum(cut) != x.shape[axis] or min(cut, default=0) < 0:
        raise ShapeError(f"an axis of {x.shape[axis]} split into {cut}")
    start, result = 0, []
    for size in cut:
        ranges: list[Sequence[int]] = [range(n) for n in x.shape]
        ranges[axis] = range(start, start + size)
        result.append(take(x, ranges))
        start += size
    return result


def pads_of(attrs: Attrs, given: Given, rank: int) -> list[tuple[int, int]]:
    """Pads before and after every axis, from attributes or inputs."""
    pads = attrs.get("pads") or attrs.get("paddings")
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
    """The position that a padded element copies; None if it is filled."""
    if 0 <= at < size:
        return at
    if mode == "constant" or not size:
        return None
    if mode == "edge":
        return min(max(at, 0), size - 1)
    if mode == "wrap":
        return at % size
    if mode != "reflect":
        raise NotFoldable
    period = max(2 * size - 2, 1)
    at %= period
    return at if at < size else period - at


def _pad(attrs: Attrs, given: Given) -> list[SmallArray]:
    x = present(given)[0]
    pads = pads_of(attrs, given, len(x.shape))
    fill: Any = attrs.get("value", 0)
    if len(given) > 2 and given[2] is not None:
        fill = given[2].item
    fill = cast(fill, x.dtype)
    mode = attrs.get("mode", "constant")
    shape = tuple(before + n + behind for (before, behind), n in zip(pads, x.shape, strict=True))
    if min(shape, default=0) < 0:
        raise ShapeError(f"pads {pads} of {x.shape}")
    fits(shape)
    axes = [
        [_source(mode, n - before, size) for n in range(result)]
        for (before, _), size, result in zip(pads, x.shape, shape, strict=True)
    ]
    steps = strides(x.shape)
    values = []
    for position in positions(shape):
        at = [axis[p] for axis, p in zip(axes, position, strict=True)]
        start = sum(p * s for p, s in zip(at, steps, strict=True) if p is not None)
        values.append(fill if None in at else x.values[start])
    return [SmallArray(shape, values, x.dtype)]


def _trilu(attrs: Attrs, given: Given) -> list[SmallArray]:
    x = present(given)[0]
    k = int(given[1].item) if len(given) > 1 and given[1] is not None else 0
    upper = attrs.get("upper", 1)
    rows, columns = x.shape[-2:]
    values = [
        value
        if ((n % columns) - (n // columns % rows) >= k if upper
            else (n % columns) - (n // columns % rows) <= k)
        else cast(0, x.dtype)
        for n, value in enumerate(x.values)
    ]  # fmt: skip
    return [SmallArray(x.shape, values, x.dtype)]


def _eye_like(attrs: Attrs, given: Given) -> list[SmallArray]:
    x = present(given)[0]
    rows, columns = x.shape
    dtype = DTYPES.get(attrs.get("dtype", 0), x.dtype)
    k = attrs.get("k", 0)
    values = [cast(int(c - r == k), dtype) for r in range(rows) for c in range(columns)]
    return [SmallArray(x.shape, values, dtype)]


def _depth_to_space(attrs: Attrs, given: Given) -> list[SmallArray]:
    x = present(given)[0]
    n, c, h, w = x.shape
    b = attrs["blocksize"]
    rows_first = attrs.get("mode", "DCR") == "DCR"
    shape: Shape = (n, b, b, c // b**2, h, w) if rows_first else (n, c // b**2, b, b, h, w)
    order = (0, 3, 4, 1, 5, 2) if rows_first else (0, 1, 4, 2, 5, 3)
    result = permuted(SmallArray(reshaped(x.shape, shape), x.values, x.dtype), order)
    return [SmallArray((n, c // b**2, h * b, w * b), result.values, x.dtype)]


def _space_to_depth(attrs: Attrs, given: Given) -> list[SmallArray]:
    x = present(given)[0]
    n, c, h, w = x.shape
    b = attrs["blocksize"]
    cut = reshaped(x.shape, (n, c, h // b, b, w // b, b))
    result = permuted(SmallArray(cut, x.values, x.dtype), (0, 3, 5, 1, 2, 4))
    return [SmallArray((n, c * b**2, h // b, w // b), result.values, x.dtype)]


def _center_crop_pad(attrs: Attrs, given: Given) -> list[SmallArray]:
    x, sizes = present(given)
    axes = attrs.get("axes") or tuple(range(len(x.shape)))
    ranges: list[Sequence[int]] = [range(size) for size in x.shape]
    pads = [(0, 0)] * len(x.shape)
    for axis, size in zip(axes, sizes.ints(), strict=True):
        axis = axis_of(axis, len(x.shape))
        cut, more = max(x.shape[axis] - size, 0), max(size - x.shape[axis], 0)
        ranges[axis] = range(cut // 2, cut // 2 + min(size, x.shape[axis]))
        pads[axis] = (more // 2, more - more // 2)
    both = [before for before, _ in pads] + [behind for _, behind in pads]
    return _pad({"pads": both, "opset": attrs["opset"]}, [take(x, ranges)])


def _reverse_sequence(attrs: Attrs, given: Given) -> list[SmallArray]:
    x, lengths = present(given)
    time, batch = attrs.get("time_axis", 0), attrs.get("batch_axis", 1)
    steps = strides(x.shape)
    values = []
    for position in positions(x.shape):
        at, length = list(position), int(lengths.values[position[batch]])
        at[time] = length - 1 - at[time] if at[time] < length else at[time]
        values.append(x.values[sum(p * s for p, s in zip(at, steps, strict=True))])
    return [SmallArray(x.shape, values, x.dtype)]


def _size(attrs: Attrs, given: Given) -> list[SmallArray]:
    return [SmallArray((), [elements(present(given)[0].shape)], "int64")]


def _shape(attrs: Attrs, given: Given) -> list[SmallArray]:
    shape = present(given)[0].shape
    cut = shape[attrs.get("start", 0) : attrs.get("end", len(shape))]
    return [SmallArray((len(cut),), list(cut), "int64")]


EVALUATE: dict[str, Evaluate] = {
    "Concat": _concat, "Slice": _slice, "Split": _split, "Reshape": _reshape,
    "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Flatten": _flatten, "Transpose": _transpose,
    "Expand": _expand, "Tile": _tile, "Pad": _pad, "Range": _range, "ConstantOfShape": _filled,
    "Trilu": _trilu, "EyeLike": _eye_like, "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth, "CenterCropPad": _center_crop_pad,
    "ReverseSequence": _reverse_sequence, "Size": _size, "Shape": _shape,
}  # fmt: skip
