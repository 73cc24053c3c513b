"""Resampling, and moving channels into space."""

from __future__ import annotations

from typing import Any

from layerscope.graph.attributes import AffineGrid, GridSample, Interp, PixelShuffle, Resize
from layerscope.graph.types import elements
from layerscope.lower.builder import Array, Site, Writer

MODES = {"nearest": "nearest", "bilinear": "linear", "bicubic": "cubic"}


def resize(s: Site) -> str:
    """Nearest is the floor of i / scale; the weighted ones use pixel centres, or corners."""
    a: Resize = s.attributes
    place = "align_corners" if a.align_corners else "half_pixel"
    told: dict[str, Any] = {"mode": MODES[a.mode], "coordinate_transformation_mode": place}
    if a.mode == "nearest":
        told.update(coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    spatial = s.shape[2:]
    scales = a.scale if len(a.scale) == len(spatial) else a.scale * len(spatial)
    if a.size or not any(n * up % down for n, (up, down) in zip(spatial, scales, strict=True)):
        return s.add("Resize", s.x, "", "", s.ints(*s.call.y), **told)
    factors = (1.0, 1.0, *(up / down for up, down in scales))
    scale = s.draft.constant(Array(factors, (len(factors),), "fp32"))
    return s.add("Resize", s.x, "", scale, **told)


def interp(s: Site) -> str:
    """Corner on corner, of what is left after cropping."""
    a: Interp = s.attributes
    x = s.x
    if any(a.crop):
        axes = range(2, s.rank)
        ends = [s.shape[n] - a.crop[1] for n in axes]
        x = s.add("Slice", x, s.ints(*[a.crop[0]] * len(axes)), s.ints(*ends), s.ints(*axes))
    told = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    return s.add("Resize", x, "", "", s.ints(*s.call.y), **told)


def unpool(s: Site) -> str:
    """Elements written at the places told, which are counted in each plane by itself."""
    batch, channels, *sizes = s.call.y
    plane = elements(tuple(sizes))
    starts = tuple(range(0, batch * channels * plane, plane))
    first = s.draft.constant(Array(starts, (batch, channels, 1, 1), "int64"))
    within = s.add("Mod", s.operand(1, "int64"), s.number(plane, "int64"))
    places = s.reshape(s.add("Add", within, first), (-1,))
    blank = s.full((batch * channels * plane,), 0.0)
    filled = s.add("ScatterElements", blank, places, s.reshape(s.x, (-1,)), axis=0)
    return s.reshape(filled, s.call.y)


def pixel_shuffle(s: Site) -> str:
    """CRD is the order of channels here. ONNX has it for images; the rest is moved by hand."""
    a: PixelShuffle = s.attributes
    batch, channels, *sizes = s.shape
    f, rank = a.factor, len(sizes)
    if rank == 2 and not a.inverse:
        return s.add("DepthToSpace", s.x, blocksize=f, mode="CRD")
    if a.inverse:  # N x C x (h f) x (w f) to N x (C f f) x h x w
        cut = [part for size in sizes for part in (size // f, f)]
        blocks = s.reshape(s.x, (batch, channels, *cut))
        order = [0, 1, *range(3, 3 + 2 * rank, 2), *range(2, 2 + 2 * rank, 2)]
        turned = s.add("Transpose", blocks, perm=order)
        return s.reshape(turned, (batch, -1, *(size // f for size in sizes)))
    blocks = s.reshape(s.x, (batch, channels // f**rank, *[f] * rank, *sizes))
    pairs = zip(range(2 + rank, 2 + 2 * rank), range(2, 2 + rank), strict=True)
    turned = s.add("Transpose", blocks, perm=[0, 1, *(axis for pair in pairs for axis in pair)])
    return s.reshape(turned, (batch, -1, *(size * f for size in sizes)))


def grid_sample(s: Site) -> str:
    a: GridSample = s.attributes or GridSample()
    return s.add("GridSample", s.x, s.inputs[1], mode=MODES[a.mode], padding_mode="zeros")


def affine_grid(s: Site) -> str:
    a: AffineGrid = s.attributes
    return s.add("AffineGrid", s.x, s.ints(*a.size), align_corners=int(a.align_corners))


WRITERS: dict[str, Writer] = {
    "affine_grid": affine_grid,
    "resize": resize,
    "interp": interp,
    "unpool": unpool,
    "pixel_shuffle": pixel_shuffle,
    "grid_sample": grid_sample,
}
