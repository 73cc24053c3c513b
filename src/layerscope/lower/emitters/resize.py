"""Resampling, unpooling and pixel shuffle."""

from __future__ import annotations

from typing import Any

from layerscope.graph.attributes import AffineGrid, GridSample, Interp, PixelShuffle, Resize
from layerscope.graph.types import elements
from layerscope.lower.builder import Emitter, NodeEmitter, OnnxConstant

MODES = {"nearest": "nearest", "bilinear": "linear", "bicubic": "cubic"}


def resize(node: NodeEmitter) -> str:
    """Nearest takes floor(i / scale); linear and cubic use pixel centres or aligned corners."""
    a: Resize = node.attributes
    transform = "align_corners" if a.align_corners else "half_pixel"
    attributes: dict[str, Any] = {
        "mode": MODES[a.mode],
        "coordinate_transformation_mode": transform,
    }
    if a.mode == "nearest":
        attributes.update(coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    spatial = node.shape[2:]
    scales = a.scale if len(a.scale) == len(spatial) else a.scale * len(spatial)
    if a.size or not any(n * up % down for n, (up, down) in zip(spatial, scales, strict=True)):
        return node.add("Resize", node.x, "", "", node.ints(*node.call.y), **attributes)
    factors = (1.0, 1.0, *(up / down for up, down in scales))
    scale = node.builder.constant(OnnxConstant(factors, (len(factors),), "fp32"))
    return node.add("Resize", node.x, "", scale, **attributes)


def interp(node: NodeEmitter) -> str:
    """Crop, then bilinear resampling with aligned corners."""
    a: Interp = node.attributes
    x = node.x
    if any(a.crop):
        axes = range(2, node.rank)
        ends = [node.shape[n] - a.crop[1] for n in axes]
        x = node.add(
            "Slice", x, node.ints(*[a.crop[0]] * len(axes)), node.ints(*ends), node.ints(*axes)
        )
    attributes: dict[str, Any] = {
        "mode": "linear",
        "coordinate_transformation_mode": "align_corners",
    }
    return node.add("Resize", x, "", "", node.ints(*node.call.y), **attributes)


def unpool(node: NodeEmitter) -> str:
    """Scatter to the indices of the second input, which count within each plane."""
    batch, channels, *sizes = node.call.y
    plane = elements(tuple(sizes))
    starts = tuple(range(0, batch * channels * plane, plane))
    first = node.builder.constant(OnnxConstant(starts, (batch, channels, 1, 1), "int64"))
    within = node.add("Mod", node.operand(1, "int64"), node.number(plane, "int64"))
    indices = node.reshape(node.add("Add", within, first), (-1,))
    blank = node.full((batch * channels * plane,), 0.0)
    filled = node.add("ScatterElements", blank, indices, node.reshape(node.x, (-1,)), axis=0)
    return node.reshape(filled, node.call.y)


def pixel_shuffle(node: NodeEmitter) -> str:
    """DepthToSpace in CRD order, which ONNX has for images; else reshape and transpose."""
    a: PixelShuffle = node.attributes
    batch, channels, *sizes = node.shape
    f, rank = a.factor, len(sizes)
    if rank == 2 and not a.inverse:
        return node.add("DepthToSpace", node.x, blocksize=f, mode="CRD")
    if a.inverse:  # N x C x (h f) x (w f) to N x (C f f) x h x w
        cut = [part for size in sizes for part in (size // f, f)]
        blocks = node.reshape(node.x, (batch, channels, *cut))
        order = [0, 1, *range(3, 3 + 2 * rank, 2), *range(2, 2 + 2 * rank, 2)]
        transposed = node.add("Transpose", blocks, perm=order)
        return node.reshape(transposed, (batch, -1, *(size // f for size in sizes)))
    blocks = node.reshape(node.x, (batch, channels // f**rank, *[f] * rank, *sizes))
    pairs = zip(range(2 + rank, 2 + 2 * rank), range(2, 2 + rank), strict=True)
    transposed = node.add(
        "Transpose", blocks, perm=[0, 1, *(axis for pair in pairs for axis in pair)]
    )
    return node.reshape(transposed, (batch, -1, *(size * f for size in sizes)))


def grid_sample(node: NodeEmitter) -> str:
    a: GridSample = node.attributes or GridSample()
    return node.add("GridSample", node.x, node.inputs[1], mode=MODES[a.mode], padding_mode="zeros")


def affine_grid(node: NodeEmitter) -> str:
    a: AffineGrid = node.attributes
    return node.add("AffineGrid", node.x, node.ints(*a.size), align_corners=int(a.align_corners))


EMITTERS: dict[str, Emitter] = {
    "affine_grid": affine_grid,
    "resize": resize,
    "interp": interp,
    "unpool": unpool,
    "pixel_shuffle": pixel_shuffle,
    "grid_sample": grid_sample,
}
