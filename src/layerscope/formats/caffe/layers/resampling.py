"""Layers that resample the spatial axes, move channels into space, or undo pooling."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.codecs.message import Message
from layerscope.formats.caffe.layer import Layer
from layerscope.graph import attributes as at

Tensors = tuple[str, ...]
TO_CHANNELS_FIRST, TO_CHANNELS_LAST = at.Permute((0, 3, 1, 2)), at.Permute((0, 2, 3, 1))
# What forks call the factor of a pixel shuffle.
FACTORS = ("upscale_factor", "block_size", "factor", "stride", "scale", "block_height")
RESAMPLING = ("", "NEAREST", "LINEAR", "CUBIC", "AREA")
ANTIALIAS = "antialiasing takes more neighbours where it shrinks"


def _upsample(layer: Layer) -> Tensors:
    """With a mask what SegNet has, which undoes max pooling; without one, nearest neighbours."""
    param = layer.param("upsample_param", "unpooling_param", "upsample_darknet_param")
    size = tuple(param.wholes("upsample_h")[-1:] + param.wholes("upsample_w")[-1:])
    if size and (len(size) != 2 or min(size) < 1):
        raise layer.error(f"upsample to {size}, expected two sizes from 1 on", param)
    default = 1 if layer.kind == "upsampledarknet" else 2
    scale = layer.positive(param, "stride" if "stride" in param else "scale", default)
    scales = (layer.positive(param, "scale_h", scale), layer.positive(param, "scale_w", scale))
    if len(layer.bottoms) > 1:
        less = (int(param.flag("pad_out_h")), int(param.flag("pad_out_w")))
        return layer.add("unpool", at.Unpool(size, scales, less), layer.bottoms[:2])
    if "unpooling_param" in layer.message and "scale" not in param:
        return layer.unknown(why="unpooling without the indices of a pooling layer")
    if size:
        return layer.add("resize", at.Resize("nearest", size))
    return layer.add("resize", at.Resize("nearest", scale=tuple((by, 1) for by in scales)))


def _interp(layer: Layer) -> Tensors:
    """To a size, by factors, or to the size of a second bottom, in the order of DeepLab's fork."""
    param = layer.param("interp_param")
    crop = (-param.whole("pad_beg"), -param.whole("pad_end"))
    if len(layer.bottoms) > 1:
        return layer.add("interp", at.Interp(crop=crop), layer.bottoms[:2])
    shrink = layer.positive(param, "shrink_factor", 1)
    zoom = layer.positive(param, "zoom_factor", 1)
    factors = ("shrink_factor" in param) + ("zoom_factor" in param)
    if factors != 1 and param.whole("height") and param.whole("width"):
        size = (layer.positive(param, "height"), layer.positive(param, "width"))
        return layer.add("interp", at.Interp(size, crop=crop))
    if factors:
        return layer.add("interp", at.Interp((), shrink, zoom, crop))
    if "full_zoom_factor" in param:  # of Synopsys's fork: every side times the factor
        by = layer.positive(param, "full_zoom_factor")
        x = layer.x
        if any(crop):
            cut = (crop[0], crop[1])
            pads = ((0, 0), (0, 0), (-cut[0], -cut[1]), (-cut[0], -cut[1]))
            (x,) = layer.add("pad", at.Pad(pads), part="crop")
        told = at.Resize("bilinear", scale=((by, 1), (by, 1)), align_corners=True)
        return layer.add("resize", told, (x,))
    raise layer.error("no zoom_factor, shrink_factor or height and width", param)


def _channels_last(layer: Layer, param: Message, op: str, told: object) -> Tensors:
    """A node on N x C x H x W, between two permutations where the file has N x H x W x C."""
    if param.text("data_format", "NHWC").upper() != "NHWC":
        return layer.add(op, told)
    turned = layer.add("permute", TO_CHANNELS_FIRST, part="channels first")
    made = layer.add(op, told, turned, part=op)
    return layer.add("permute", TO_CHANNELS_LAST, made)


def _resize(mode: at.Sampling, param_name: str) -> Callable[[Layer], Tensors]:
    """As TensorFlow has it: to a size, or by whole factors."""

    def make(layer: Layer) -> Tensors:
        param = layer.param(param_name)
        corners = param.flag("align_corners")
        if "output_height" in param and "output_width" in param:
            size = (layer.positive(param, "output_height"), layer.positive(param, "output_width"))
            return _channels_last(
                layer, param, "resize", at.Resize(mode, size, align_corners=corners)
            )
        scales = []
        for name in ("scale_height", "scale_width"):
            scale = param.number(name, 1.0)
            if not (scale.is_integer() and 1 <= scale < 1 << 31):
                return layer.unknown(why=f"{name} {scale:g}, which rounds as its fork likes")
            scales.append((int(scale), 1))
        told = at.Resize(mode, scale=tuple(scales), align_corners=corners)
        return _channels_last(layer, param, "resize", told)

    return make


def _pixels(*params: str, inverse: bool, last: bool = False) -> Callable[[Layer], Tensors]:
    """Blocks of channels moved into space, or back; `last` where TensorFlow's order is usual."""

    def make(layer: Layer) -> Tensors:
        param = layer.param(*params)
        field = next((name for name in FACTORS if name in param), FACTORS[0])
        if param.whole("block_width", param.whole("block_height")) != param.whole("block_height"):
            return layer.unknown(why="blocks that are no squares")
        factor = layer.positive(param, field, 2)
        back = param.flag("reverse") != inverse
        told = at.PixelShuffle(factor, inverse=back)
        if last:
            return _channels_last(layer, param, "pixel_shuffle", told)
        return layer.add("pixel_shuffle", told)

    return make


def _resample(layer: Layer) -> Tensors:
    """FlowNet's: to a size, by a factor, or to the size of a second bottom."""
    param = layer.param("resample_param")
    kind = param.choice("type", RESAMPLING, "LINEAR")
    size: tuple[int, ...] = ()
    if len(layer.bottoms) == 1:
        if "width" not in param or "height" not in param:
            return layer.unknown(why="a factor, which rounds as its fork likes")
        size = (layer.positive(param, "height"), layer.positive(param, "width"))
        if kind == "NEAREST":
            return layer.add("resize", at.Resize("nearest", size))
        if kind == "LINEAR" and not param.flag("antialias", True):
            return layer.add("resize", at.Resize("bilinear", size))
    return layer.unknown(infer="resized", sizes=size, why=ANTIALIAS)


def _downsample(layer: Layer) -> Tensors:
    """FlowNet's, to a size or that of a second bottom."""
    param = layer.param("downsample_param", "accum_param")
    size = (param.whole("top_height"), param.whole("top_width"))
    if param.whole("size_divisible_by"):
        return layer.unknown(why="a size that its fork rounds")
    told = size if min(size) > 0 else ()
    return layer.unknown(infer="resized", sizes=told, why="weights that depend on the scale")


def _flow_warp(layer: Layer) -> Tensors:
    """Images sampled at each position moved by the flow, N x 2 x H x W."""
    if len(layer.bottoms) != 2:
        return layer.unknown(why=f"{len(layer.bottoms)} bottoms, expected images and flow")
    moved = layer.add("add", None, layer.bottoms[1:], part="positions")
    grid = layer.add("permute", TO_CHANNELS_LAST, moved, part="grid")
    return layer.add("grid_sample", at.GridSample(), (layer.x, *grid))


def _correlation(layer: Layer) -> Tensors:
    """FlowNet's: a map for each displacement of the second bottom against the first."""
    param = layer.param("correlation_param")
    most, apart = param.whole("max_displacement"), layer.positive(param, "stride_2", 1)
    flat = layer.kind == "correlation1d"
    maps = 2 * (most // apart) + 1
    if flat and param.whole("single_direction"):
        maps = most // apart + 1
    sizes = (
        param.whole("pad"),
        layer.positive(param, "kernel_size", 1),
        most,
        layer.positive(param, "stride_1", 1),
        maps if flat else maps * maps,
        int(flat),
    )
    return layer.unknown(infer="correlation", sizes=sizes, why="no rule for a correlation")


LAYERS = {
    "upsample": _upsample,
    "upsampledarknet": _upsample,
    "interp": _interp,
    "resizebilinear": _resize("bilinear", "resize_bilinear_param"),
    "resizenearestneighbor": _resize("nearest", "resize_nearest_neighbor_param"),
    "reorg": _pixels("reorg_param", inverse=True),
    "passthrough": _pixels("passthrough_param", inverse=True),
    "pixelshuffle": _pixels("pixel_shuffle_param", "pixelshuffle_param", inverse=False),
    "depthtospace": _pixels("depth_to_space_param", inverse=False, last=True),
    "spacetodepth": _pixels("space_to_depth_param", inverse=True, last=True),
    "resample": _resample,
    "downsample": _downsample,
    "accum": _downsample,
    "flowwarp": _flow_warp,
    "correlation": _correlation,
    "correlation1d": _correlation,
}
