"""Gather, scatter, sort and similar operators on small arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layerscope.errors import ShapeError
from layerscope.formats.onnx.arrays import (
    Attrs,
    Evaluate,
    Given,
    NotFoldable,
    Numbers,
    SmallArray,
    cast,
    fits,
    positions,
    strides,
    take,
)
from layerscope.formats.onnx.dtypes import Number
from layerscope.formats.onnx.folding.elementwise import present
from layerscope.graph.types import elements
from layerscope.ops.spec import axis_of


def _index(index: Number, size: int) -> int:
    """An index from the front, which must be inside of its axis."""
    if not -size <= index < size:
        raise ShapeError(f"index {index} into an axis of {size}")
    return int(index) % size


def _gather(attrs: Attrs, given: Given) -> list[SmallArray]:
    data, indices = present(given)
    axis = axis_of(attrs.get("axis", 0), len(data.shape))
    size = data.shape[axis]
    shape = fits((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))
    inner, outer = elements(data.shape[axis + 1 :]), elements(data.shape[:axis])
    values: Numbers = []
    for block in range(outer):
        for index in indices.values:
            start = (block * size + _index(index, size)) * inner
            values.extend(data.values[start : start + inner])
    return [SmallArray(shape, values, data.dtype)]


def _gather_elements(attrs: Attrs, given: Given) -> list[SmallArray]:
    data, indices = present(given)
    axis = axis_of(attrs.get("axis", 0), len(data.shape))
    steps = strides(data.shape)
    values = []
    for position, index in zip(positions(indices.shape), indices.values, strict=True):
        at = (*position[:axis], _index(index, data.shape[axis]), *position[axis + 1 :])
        values.append(data.values[sum(p * s for p, s in zip(at, steps, strict=True))])
    return [SmallArray(indices.shape, values, data.dtype)]


def _gather_nd(attrs: Attrs, given: Given) -> list[SmallArray]:
    data, indices = present(given)
    batch = attrs.get("batch_dims", 0)
    depth = indices.shape[-1]
    if batch + depth > len(data.shape):
        raise ShapeError(f"{depth} indices into {data.shape} behind {batch} batch axes")
    rest = data.shape[batch + depth :]
    shape = fits((*indices.shape[:-1], *rest))
    run, steps = elements(rest), strides(data.shape)
    rows = elements(indices.shape[batch:-1])
    block = elements(data.shape[batch:])
    values: Numbers = []
    for n in range(elements(indices.shape[:-1])):
        at = indices.values[n * depth : n * depth + depth]
        start = n // max(rows, 1) * block + sum(
            _index(p, size) * step
            for p, size, step in zip(at, data.shape[batch:], steps[batch:], strict=False)
        )
        values.extend(data.values[start : start + run])
    return [SmallArray(shape, values, data.dtype)]


REDUCTIONS: dict[str, Callable[[Number, Number], Number]] = {
    "none": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": max,
    "min": min,
}


def _reduction(attrs: Attrs) -> Callable[[Number, Number], Number]:
    found = REDUCTIONS.get(attrs.get("reduction", "none"))
    if found is None:
        raise NotFoldable
    return found


def _scatter_nd(attrs: Attrs, given: Given) -> list[SmallArray]:
    data, indices, updates = present(given)
    join = _reduction(attrs)
    depth = indices.shape[-1]
    run = elements(data.shape[depth:])
    steps = strides(data.shape)
    values = list(data.values)
    for n in range(elements(indices.shape[:-1])):
        at = indices.values[n * depth : n * depth + depth]
        start = sum(_index(p, m) * s for p, m, s in zip(at, data.shape, steps, strict=False))
        for k in range(run):
            new = updates.values[n * run + k]
            values[start + k] = cast(join(values[start + k], new), data.dtype)
    return [SmallArray(data.shape, values, data.dtype)]


def _scatter_elements(attrs: Attrs, given: Given) -> list[SmallArray]:
    data, indices, updates = present(given)
    join = _reduction(attrs)
    axis = axis_of(attrs.get("axis", 0), len(data.shape))
    steps = strides(data.shape)
    values = list(data.values)
    for position, index, update in zip(
        positions(indices.shape), indices.values, updates.values, strict=True
    ):
        at = (*position[:axis], _index(index, data.shape[axis]), *position[axis + 1 :])
        where = sum(p * s for p, s in zip(at, steps, strict=True))
        values[where] = cast(join(values[where], update), data.dtype)
    return [SmallArray(data.shape, values, data.dtype)]


def _non_zero(attrs: Attrs, given: Given) -> list[SmallArray]:
    x = present(given)[0]
    found = [
        position for position, value in zip(positions(x.shape), x.values, strict=True) if value
    ]
    rank = len(x.shape)
    return [SmallArray((rank, len(found)), [p[n] for n in range(rank) for p in found], "int64")]


def _top_k(attrs: Attrs, given: Given) -> list[SmallArray]:
    x = present(given)[0]
    k = int(given[1].item) if len(given) > 1 and given[1] is not None else attrs["k"]
    axis = axis_of(attrs.get("axis", -1), len(x.shape))
    size, step = x.shape[axis], strides(x.shape)[axis]
    if not 0 <= k <= size:
        raise ShapeError(f"the {k} largest of {size}")
    if any(value != value for value in x.values):
        raise NotFoldable
    sign = -1 if attrs.get("largest", 1) else 1
    block = size * step
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    values: Numbers = [0] * elements(shape)
    indices: Numbers = [0] * len(values)
    for outer in range(len(x.values) // block if block else 0):
        for inner in range(step):
            start = outer * block + inner
            line = x.values[start : start + block - inner : step]
            order = sorted((sign * value, n) for n, value in enumerate(line))
            for n, (_, position) in enumerate(order[:k]):
                at = outer * k * step + n * step + inner
                values[at], indices[at] = line[position], position
    return [SmallArray(shape, values, x.dtype), SmallArray(shape, indices, "int64")]


def _one_hot(attrs: Attrs, given: Given) -> list[SmallArray]:
    indices, depth, pair = present(given)
    count = int(depth.item)
    rank = len(indices.shape) + 1
    axis = axis_of(attrs.get("axis", -1), rank)
    if count < 0:
        raise ShapeError(f"one of {count} classes")
    shape = fits((*indices.shape[:axis], count, *indices.shape[axis:]))
    off, on = pair.values
    inner = elements(indices.shape[axis:])
    values: Numbers = [off] * elements(shape)
    for n, index in enumerate(indices.values):
        if -count <= index < count:
            outer, rest = divmod(n, inner)
            values[(outer * count + int(index) % count) * inner + rest] = on
    return [SmallArray(shape, values, pair.dtype)]


def _compress(attrs: Attrs, given: Given) -> list[SmallArray]:
    x, condition = present(given)
    chosen = [n for n, value in enumerate(condition.values) if value]
    if "axis" not in attrs:
        values = [x.values[n] for n in chosen if n < len(x.values)]
        return [SmallArray((len(values),), values, x.dtype)]
    axis = axis_of(attrs["axis"], len(x.shape))
    ranges: list[Sequence[int]] = [range(size) for size in x.shape]
    ranges[axis] = [n for n in chosen if n < x.shape[axis]]
    return [take(x, ranges)]


def _unique(attrs: Attrs, given: Given) -> list[SmallArray]:
    """Unique: the values, their first positions, the inverse, the counts."""
    x = present(given)[0]
    if "axis" in attrs:
        axis = axis_of(attrs["axis"], len(x.shape))
        items = []
        for n in range(x.shape[axis]):
            ranges: list[Sequence[int]] = [range(size) for size in x.shape]
            ranges[axis] = [n]
            items.append(tuple(take(x, ranges).values))
    else:
        items = [(value,) for value in x.values]
    first: dict[tuple[Number, ...], int] = {}
    for n, item in enumerate(items):
        first.setdefault(item, n)
    kept = sorted(first) if attrs.get("sorted", 1) else list(first)
    number = {item: n for n, item in enumerate(kept)}
    counts = [0] * len(kept)
    for item in items:
        counts[number[item]] += 1
    if "axis" in attrs:
        chosen: list[Sequence[int]] = [range(size) for size in x.shape]
        chosen[axis] = [first[item] for item in kept]
        values = take(x, chosen)
    else:
        values = SmallArray((len(kept),), [item[0] for item in kept], x.dtype)
    lists: tuple[Numbers, Numbers, Numbers] = (
        [first[item] for item in kept], [number[item] for item in items], [*counts]
    )  # fmt: skip
    result = [values, *[SmallArray((len(each),), each, "int64") for each in lists]]
    return result[: attrs["outputs"]]


EVALUATE: dict[str, Evaluate] = {
    "Gather": _gather, "GatherElements": _gather_elements, "GatherND": _gather_nd,
    "Scatter": _scatter_elements, "ScatterElements": _scatter_elements, "ScatterND": _scatter_nd,
    "NonZero": _non_zero, "TopK": _top_k, "OneHot": _one_hot, "Compress": _compress,
    "Unique": _unique,
}  # fmt: skip
