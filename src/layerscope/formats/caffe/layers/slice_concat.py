"""Layers that concatenate, split, slice and crop."""

from __future__ import annotations

from layerscope.formats.caffe.inputs import MOST_AXES
from layerscope.formats.caffe.layer import CaffeLayer, Converter, Tensors
from layerscope.graph import attributes as at

END = (1 << 31) - 1  # a slice up to here ends at the end of the axis


def _concat(layer: CaffeLayer) -> Tensors:
    param = layer.param("concat_param")
    axis = param.whole("axis", param.whole("concat_dim", 1))
    return layer.add("concat", at.Concat(axis), layer.bottoms or (layer.x,))


def _slice(layer: CaffeLayer) -> Tensors:
    """Caffe's Slice is a split: one top per part, of equal size or between slice points."""
    param = layer.param("slice_param")
    axis = param.whole("axis", param.whole("slice_dim", 1))
    tops = max(len(layer.tops), 1)
    points = param.wholes("slice_point")
    if not points:
        return layer.add("split", at.Split(axis, parts=tops), outputs=tops)
    if len(points) != tops - 1:
        raise layer.error(f"{len(points)} slice points for {tops} tops", param, "slice_point")
    steps = [after - before for before, after in zip((0, *points[:-1]), points, strict=True)]
    if min(steps) < 1:
        shown = f"{points[:8]}" if len(points) <= 8 else f"{points[:8]} and more"
        what = f"slice points {shown}, expected each above the last"
        raise layer.error(what, param, "slice_point")
    return layer.add("split", at.Split(axis, (*steps, -1)), outputs=tops)


def _crop(layer: CaffeLayer) -> Tensors:
    """Crop to the size of the second bottom."""
    param = layer.param("crop_param")
    offsets = tuple(param.wholes("offset")) or (0,)
    if len(offsets) > MOST_AXES:
        what = f"{len(offsets)} offsets, expected at most {MOST_AXES}"
        raise layer.error(what, param, "offset")
    attrs = at.Crop(param.whole("axis", 2), offsets, not layer.options.keep_going)
    return layer.add("crop", attrs, layer.bottoms[:2])


def _piece(layer: CaffeLayer) -> Tensors:
    """`size` elements of each axis from `begin` on; a size of -1 takes the rest."""
    param = layer.param("piece_param")
    starts, sizes = param.wholes("begin"), param.wholes("size")
    if len(starts) != len(sizes) or not starts or len(starts) > MOST_AXES or min(starts) < 0:
        raise layer.error(f"{len(starts)} times begin and {len(sizes)} times size", param)
    ends = [END if n == -1 else start + n for start, n in zip(starts, sizes, strict=True)]
    return layer.add("slice", at.Slice(tuple(range(len(starts))), tuple(starts), tuple(ends)))


def _strided_slice(layer: CaffeLayer) -> Tensors:
    """Slices with a step; TensorFlow's masks are not supported."""
    param = layer.param("strided_slice_param")
    masks = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    if any(param.whole(f"{name}_mask") for name in masks):
        return layer.unknown(why="a slice with masks")
    starts, ends, steps = (param.wholes(name) for name in ("begin", "end", "strides"))
    axes = param.wholes("axes") or list(range(len(starts)))
    steps = steps or [1] * len(starts)
    if not starts or not len(starts) == len(ends) == len(steps) == len(axes) <= MOST_AXES:
        raise layer.error(f"a slice of {len(starts)} begins and {len(ends)} ends", param)
    attrs = at.Slice(tuple(axes), tuple(starts), tuple(ends), tuple(steps))
    return layer.add("slice", attrs)


LAYERS: dict[str, Converter] = {
    "concat": _concat,
    "slice": _slice,
    "crop": _crop,
    "piece": _piece,
    "stridedslice": _strided_slice,
}
