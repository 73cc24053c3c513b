"""ONNX models of resampling, unpooling and pixel shuffle."""

from __future__ import annotations

import math

from layerscope.graph import attributes as at
from layerscope.graph.attributes import AffineGrid, GridSample, PixelShuffle, Resize
from tests.brute.engine import Model, Writer


def resize(m: Model) -> str:
    """Nearest is the floor of i / scale; the weighted ones use pixel centres, or corners."""
    a: Resize = m.attributes
    mode = {"nearest": "nearest", "bilinear": "linear", "bicubic": "cubic"}[a.mode]
    place = "align_corners" if a.align_corners else "half_pixel"
    told: dict[str, object] = {"mode": mode, "coordinate_transformation_mode": place}
    if a.mode == "nearest":
        told.update(coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    spatial = len(m.shape) - 2
    if a.size:
        sizes = a.size if len(a.size) == spatial else a.size * spatial
        return m.node("Resize", m.x, "", "", m.ints(*m.shape[:2], *sizes), **told)
    scales = a.scale if len(a.scale) == spatial else a.scale * spatial
    factors = m.numbers([1.0, 1.0, *(up / down for up, down in scales)])
    return m.node("Resize", m.x, "", factors, **told)


def pixel_shuffle(m: Model) -> str:
    """CRD is the order of channels here. SpaceToDepth has it the other way round, block first."""
    a: PixelShuffle = m.attributes
    n, channels, *sizes = m.shape
    f, rank = a.factor, len(sizes)
    if rank == 2 and not a.inverse:
        return m.node("DepthToSpace", m.x, blocksize=f, mode="CRD")
    if rank == 2:
        blocks = m.node("SpaceToDepth", m.x, blocksize=f)
        height, width = sizes[0] // f, sizes[1] // f
        parts = m.node("Reshape", blocks, m.ints(n, f * f, channels, height, width))
        turned = m.node("Transpose", parts, perm=[0, 2, 1, 3, 4])
        return m.node("Reshape", turned, m.ints(n, channels * f * f, height, width))
    block = f**rank
    assert not a.inverse
    parts = m.node("Reshape", m.x, m.ints(n, channels // block, *[f] * rank, *sizes))
    order = [
        0,
        1,
        *(
            axis
            for pair in zip(range(2 + rank, 2 + 2 * rank), range(2, 2 + rank), strict=True)
            for axis in pair
        ),
    ]
    turned = m.node("Transpose", parts, perm=order)
    return m.node("Reshape", turned, m.ints(n, channels // block, *(size * f for size in sizes)))


def grid_sample(m: Model) -> str:
    a: GridSample = m.attributes or GridSample()
    mode = {"nearest": "nearest", "bilinear": "linear", "bicubic": "cubic"}[a.mode]
    return m.node("GridSample", m.x, m.of(1), mode=mode, padding_mode="zeros")


def interp(m: Model) -> str:
    a: at.Interp = m.attributes
    begin, end = a.crop
    sizes = [size - begin - end for size in m.shape[2:]]
    new = a.size or tuple(((size - 1) // a.shrink) * a.zoom + 1 for size in sizes)
    if len(m.inputs) == 2:
        new = m.inputs[1].shape[2:]
    ends = (m.shape[2] - end, m.shape[3] - end)
    x = m.node("Slice", m.x, m.ints(begin, begin), m.ints(*ends), m.ints(2, 3))
    told = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    return m.node("Resize", x, "", "", m.ints(*m.shape[:2], *new), **told)


def unpool(m: Model) -> str:
    """ONNX numbers the places of all planes together."""
    a: at.Unpool = m.attributes
    sizes = a.size or tuple(
        s * by - less for s, by, less in zip(m.shape[2:], a.scale, a.less, strict=True)
    )
    planes = [n * math.prod(sizes) for n in range(math.prod(m.shape[:2]))]
    first = m.node("Reshape", m.ints(*planes), m.ints(*m.shape[:2], 1, 1))
    places = m.node("Add", m.cast(m.of(1), "int64"), first)
    shape = m.ints(*m.shape[:2], *sizes)
    return m.node("MaxUnpool", m.x, places, shape, kernel_shape=[1, 1])


def affine_grid(m: Model) -> str:
    a: AffineGrid = m.attributes
    return m.node("AffineGrid", m.x, m.ints(*a.size), align_corners=int(a.align_corners))


MODELS: dict[str, Writer] = {
    "resize": resize,
    "pixel_shuffle": pixel_shuffle,
    "grid_sample": grid_sample,
    "interp": interp,
    "unpool": unpool,
    "affine_grid": affine_grid,
}
