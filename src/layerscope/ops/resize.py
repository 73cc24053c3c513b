"""Resampling the spatial axes, and moving channels into space."""

from __future__ import annotations

from math import gcd

from layerscope.errors import ShapeError
from layerscope.graph.attributes import AffineGrid, GridSample, Interp, PixelShuffle, Resize, Unpool
from layerscope.graph.types import Shape, elements
from layerscope.ops.access_map import NOT_READ, SAME, AccessMap, Map, Resample, WindowMap, keep
from layerscope.ops.autograd import Saved, every_input, nothing
from layerscope.ops.spec import FREE, Call, Gemm, Ops, OpSpec, free, need_rank, passes

TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4}


def _resize_shape(call: Call) -> tuple[Shape, ...]:
    need_rank(call, 3, "resizing")
    a: Resize = call.attributes
    spatial = call.x[2:]
    if a.size:
        sizes = a.size if len(a.size) == len(spatial) else a.size * len(spatial)
    else:
        scale = a.scale if len(a.scale) == len(spatial) else a.scale * len(spatial)
        if len(scale) != len(spatial):
            raise ShapeError(f"{len(a.scale)} scales for {len(spatial)} spatial axes")
        sizes = tuple(size * up // down for size, (up, down) in zip(spatial, scale, strict=True))
    if len(sizes) != len(spatial) or min(sizes, default=0) < 1:
        raise ShapeError(f"resizing {spatial} to {sizes}")
    return ((*call.x[:2], *sizes),)


def _resize_ops(call: Call) -> Ops:
    """A weighted sum of taps^rank neighbours; nearest only copies."""
    taps = TAPS[call.attributes.mode]
    if taps == 1:
        return FREE
    neighbours: int = taps ** len(call.x[2:])
    return Ops(mul=neighbours, add=neighbours - 1) * call.out_elements


def _resize_access(call: Call) -> tuple[AccessMap, ...]:
    """A scale steps by itself, even where the output was rounded down to a whole size."""
    a: Resize = call.attributes
    scale = a.scale if len(a.scale) == len(call.x) - 2 else a.scale * (len(call.x) - 2)
    access: dict[int, tuple[int, Map]] = {0: (0, SAME), 1: (1, SAME)}
    for n in range(2, len(call.x)):
        up, down = (call.y[n], call.x[n]) if a.size else scale[n - 2]
        if a.align_corners and a.mode != "nearest":
            up, down = max(call.y[n] - 1, 1), call.x[n] - 1
        common = gcd(up, down) or 1
        taps = TAPS[a.mode]
        access[n] = (n, Resample(up // common, down // common, taps, half=not a.align_corners))
    return (access,)


def _interp_sizes(call: Call) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The spatial axes that are resampled, cropped, and what they become."""
    a: Interp = call.attributes
    need_rank(call, 3, "interpolation")
    cropped = tuple(size - sum(a.crop) for size in call.x[2:])
    if min(a.crop, default=0) < 0 or min(cropped) < 1 or min(a.shrink, a.zoom) < 1:
        raise ShapeError(
            f"interpolating {call.x[2:]} cropped by {a.crop}, shrunk by {a.shrink}, zoomed by "
            f"{a.zoom}"
        )
    if len(call.inputs) == 2:
        sizes = call.inputs[1][2:]
    else:
        sizes = a.size or tuple(((size - 1) // a.shrink) * a.zoom + 1 for size in cropped)
    if len(sizes) != len(cropped) or min(sizes, default=0) < 1:
        raise ShapeError(f"interpolating {call.x[2:]} to {sizes}")
    return cropped, sizes


def _interp_shape(call: Call) -> tuple[Shape, ...]:
    return ((*call.x[:2], *_interp_sizes(call)[1]),)


def _interp_ops(call: Call) -> Ops:
    """A weighted sum of 2ⁿ neighbours; what keeps its size is copied."""
    cropped, sizes = _interp_sizes(call)
    if cropped == sizes:
        return FREE
    neighbours: int = 2 ** len(sizes)
    return Ops(mul=neighbours, add=neighbours - 1) * call.out_elements


def _interp_access(call: Call) -> tuple[AccessMap, ...]:
    a: Interp = call.attributes
    cropped, sizes = _interp_sizes(call)
    access: dict[int, tuple[int, Map]] = {0: (0, SAME), 1: (1, SAME)}
    if a.crop == (0, 0):
        for n, (old, new) in enumerate(zip(cropped, sizes, strict=True), 2):
            up, down = max(new - 1, 1), old - 1
            common = gcd(up, down) or 1
            access[n] = (n, Resample(up // common, down // common, 2, half=False))
    return (access, NOT_READ)[: len(call.inputs)]


def _unpool_shape(call: Call) -> tuple[Shape, ...]:
    a: Unpool = call.attributes
    x, mask = call.inputs
    if len(x) not in (4, 5) or x != mask:
        raise ShapeError(f"unpooling takes twice N x C x H x W, got {x} and {mask}")
    if not a.size and not len(a.scale) == len(a.less) == len(x) - 2:
        raise ShapeError(f"unpooling {x} by scales {a.scale}, expected one for each spatial axis")
    sizes = a.size or tuple(
        size * by - less for size, by, less in zip(x[2:], a.scale, a.less, strict=True)
    )
    if len(sizes) != len(x) - 2 or min(sizes, default=0) < 1:
        raise ShapeError(f"unpooling {x[2:]} to {sizes}")
    return ((*x[:2], *sizes),)


def _shuffle_shape(call: Call) -> tuple[Shape, ...]:
    a: PixelShuffle = call.attributes
    need_rank(call, 4, "pixel shuffle")
    batch, channels, *sizes = call.x
    block = a.factor ** len(sizes)
    if a.factor < 1:
        raise ShapeError(f"pixel shuffle by {a.factor}, expected at least 1")
    if a.inverse:
        if any(size % a.factor for size in sizes):
            raise ShapeError(f"{sizes} cannot be cut into blocks of {a.factor}")
        return ((batch, channels * block, *(size // a.factor for size in sizes)),)
    if channels % block:
        raise ShapeError(f"{channels} channels cannot be moved into blocks of {block}")
    return ((batch, channels // block, *(size * a.factor for size in sizes)),)


def _shuffle_access(call: Call) -> tuple[AccessMap, ...]:
    """Forward, output i reads input i // factor; inverse, some channel reads each of the block."""
    a: PixelShuffle = call.attributes
    f = a.factor
    spatial: Map = WindowMap(taps=f, stride=f) if a.inverse else Resample(up=f, down=1)
    access: dict[int, tuple[int, Map]] = {n: (n, spatial) for n in range(2, len(call.x))}
    return ({0: (0, SAME), **access},)


def _grid_shape(call: Call) -> tuple[Shape, ...]:
    x, grid = call.inputs
    axes = len(x) - 2
    if axes not in (2, 3) or len(grid) != len(x) or grid[-1] != axes or grid[0] != x[0]:
        raise ShapeError(f"grid sampling takes N x C x H x W and N x h x w x 2, got {x} and {grid}")
    return ((*x[:2], *grid[1:-1]),)


def _grid_ops(call: Call) -> Ops:
    """A weighted sum of neighbours for every output; nearest only copies."""
    taps = TAPS[(call.attributes or GridSample()).mode]
    if taps == 1:
        return FREE
    neighbours: int = taps ** (len(call.x) - 2)
    return Ops(mul=neighbours, add=neighbours - 1) * call.out_elements


def _grid_access(call: Call) -> tuple[AccessMap, ...]:
    """Which pixels are read depends on data; the grid is read elementwise."""
    grid: dict[int, tuple[int, Map]] = {n: (n + 1, SAME) for n in range(1, len(call.x) - 1)}
    return (keep((0, 1)), {0: (0, SAME), **grid})


def _affine_shape(call: Call) -> tuple[Shape, ...]:
    a: AffineGrid = call.attributes
    spatial = a.size[2:]
    if not spatial or min(a.size) < 1 or call.x != (a.size[0], len(spatial), len(spatial) + 1):
        raise ShapeError(f"matrices {call.x} for a grid of {a.size}")
    return ((a.size[0], *spatial, len(spatial)),)


def _affine_gemm(call: Call) -> Gemm:
    """Every position in homogeneous coordinates, times the matrix of its image."""
    batch, axes, depth = call.x
    return Gemm(m=call.out_elements // (batch * axes), n=axes, k=depth, count=batch)


def _affine_ops(call: Call) -> Ops:
    return Ops(mac=call.out_elements * call.x[2])


SPECS = {
    "affine_grid": OpSpec(
        family="resizing",
        attributes=AffineGrid,
        shape=_affine_shape,
        ops=_affine_ops,
        gemm=_affine_gemm,
        access_map=lambda call: ({0: (0, SAME), 1: (len(call.y) - 1, SAME)},),
        backward=lambda call: (_affine_ops(call), FREE),
        saved_for_backward=nothing,
    ),
    "grid_sample": OpSpec(
        family="resizing",
        attributes=GridSample,
        names={"torch": "", "torch_function": "grid_sampler", "dagnn": "BilinearSampler"},
        shape=_grid_shape,
        saved_for_backward=every_input,
        ops=_grid_ops,
        access_map=_grid_access,
        backward=lambda call: (_grid_ops(call) * 2, FREE),
        arity=(2, 2),
    ),
    "resize": OpSpec(
        family="resizing",
        attributes=Resize,
        names={
            "torch": "Upsample",
            "torch_function": "upsample_nearest{}d",
            "keras": "UpSampling{}D",
        },
        shape=_resize_shape,
        saved_for_backward=nothing,
        ops=_resize_ops,
        access_map=_resize_access,
        backward=lambda call: (
            _resize_ops(call) if call.attributes.mode != "nearest" else Ops(add=call.out_elements),
            FREE,
        ),
    ),
    "interp": OpSpec(
        family="resizing",
        attributes=Interp,
        shape=_interp_shape,
        saved_for_backward=nothing,
        ops=_interp_ops,
        access_map=_interp_access,
        input_elements=lambda call: (elements(call.x), 0)[: len(call.inputs)],
        arity=(1, 2),
        backward=lambda call: (_interp_ops(call), FREE),
    ),
    "unpool": OpSpec(
        family="resizing",
        attributes=Unpool,
        shape=_unpool_shape,
        saved_for_backward=lambda call: Saved(inputs=(1,)),
        ops=free,
        access_map=lambda call: (keep((0, 1)), keep((0, 1))),
        backward=passes,
        arity=(2, 2),
    ),
    "pixel_shuffle": OpSpec(
        family="resizing",
        attributes=PixelShuffle,
        names={"torch": "PixelShuffle", "torch_function": "pixel_shuffle"},
        shape=_shuffle_shape,
        ops=free,
        access_map=_shuffle_access,
        backward=passes,
        saved_for_backward=nothing,
    ),
}
