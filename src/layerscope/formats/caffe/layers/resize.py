"""Layers that change the spatial size: upsampling, unpooling, pixel shuffle, grid sampling."""

from __future__ import annotations

from layerscope.codecs.message import Message
from layerscope.formats.caffe.layer import CaffeLayer, Converter, Tensors
from layerscope.graph import attributes as at

TO_CHANNELS_FIRST, TO_CHANNELS_LAST = at.Permute((0, 3, 1, 2)), at.Permute((0, 2, 3, 1))
# Names that forks give the factor of a pixel shuffle.
FACTORS = ("upscale_factor", "block_size", "factor", "stride", "scale", "block_height")
RESAMPLING = ("", "NEAREST", "LINEAR", "CUBIC", "AREA")
ANTIALIAS = "antialiasing takes more neighbours where it shrinks"


def _upsample(layer: CaffeLayer) -> Tensors:
    """With a second bottom SegNet's max unpooling by indices, else nearest neighbours."""
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


def _interp(layer: CaffeLayer) -> Tensors:
    """To the size of a second bottom, to a size, or by factors, in the order of DeepLab's fork."""
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
    if "full_zoom_factor" in param:  # Synopsys's fork: every side times the factor
        by = layer.positive(param, "full_zoom_factor")
        x = layer.x
        if any(crop):
            cut = (crop[0], crop[1])
            pads = ((0, 0), (0, 0), (-cut[0], -cut[1]), (-cut[0], -cut[1]))
            (x,) = layer.add("pad", at.Pad(pads), part="crop")
        attrs = at.Resize("bilinear", scale=((by, 1), (by, 1)), align_corners=True)
        return layer.add("resize", attrs, (x,))
    raise layer.error("no zoom_factor, shrink_factor or height and width", param)


def _with_data_format(layer: CaffeLayer, param: Message, op: str, attrs: object) -> Tensors:
    """A node on N x C x H x W; between two permutations where `data_format` is NHWC."""
    if param.text("data_format", "NHWC").upper() != "NHWC":
        return layer.add(op, attrs)
    turned = layer.add("permute", TO_CHANNELS_FIRST, part="channels first")
    return layer.add("permute", TO_CHANNELS_LAST, layer.add(op, attrs, turned, part=op))


def _resize(mode: at.Sampling, param_name: str) -> Converter:
    """TensorFlow's resize: to a size, or by integer factors."""

    def convert(layer: CaffeLayer) -> Tensors:
        param = layer.param(param_name)
        corners = param.flag("align_corners")
        if "output_height" in param and "output_width" in param:
            size = (layer.positive(param, "output_height"), layer.positive(param, "output_width"))
            attrs = at.Resize(mode, size, align_corners=corners)
            return _with_data_format(layer, param, "resize", attrs)
        scales = []
        for name in ("scale_height", "scale_width"):
            scale = param.number(name, 1.0)
            if not (scale.is_integer() and 1 <= scale < 1 << 31):
                return layer.unknown(why=f"{name} {scale:g}, which rounds as its fork likes")
            scales.append((int(scale), 1))
        attrs = at.Resize(mode, scale=tuple(scales), align_corners=corners)
        return _with_data_format(layer, param, "resize", attrs)

    return convert


def _pixel_shuffle(*params: str, inverse: bool, data_format: bool = False) -> Converter:
    """Move blocks of channels into space, or back; with `data_format` the default is NHWC."""

    def convert(layer: CaffeLayer) -> Tensors:
        param = layer.param(*params)
        field = next((name for name in FACTORS if name in param), FACTORS[0])
        if param.whole("block_width", param.whole("block_height")) != param.whole("block_height"):
            return layer.unknown(why="blocks that are no squares")
        factor = layer.positive(param, field, 2)
        attrs = at.PixelShuffle(factor, inverse=param.flag("reverse") != inverse)
        if data_format:
            return _with_data_format(layer, param, "pixel_shuffle", attrs)
        return layer.add("pixel_shuffle", attrs)

    return convert


def _resample(layer: CaffeLayer) -> Tensors:
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


def _flow_warp(layer: CaffeLayer) -> Tensors:
    """Sample images at each position moved by the flow, N x 2 x H x W."""
    if len(layer.bottoms) != 2:
        return layer.unknown(why=f"{len(layer.bottoms)} bottoms, expected images and flow")
    moved = layer.add("add", None, layer.bottoms[1:], part="positions")
    grid = layer.add("permute", TO_CHANNELS_LAST, moved, part="grid")
    return layer.add("grid_sample", at.GridSample(), (layer.x, *grid))


LAYERS: dict[str, Converter] = {
    "upsample": _upsample,
    "upsampledarknet": _upsample,
    "interp": _interp,
    "resizebilinear": _resize("bilinear", "resize_bilinear_param"),
    "resizenearestneighbor": _resize("nearest", "resize_nearest_neighbor_param"),
    "reorg": _pixel_shuffle("reorg_param", inverse=True),
    "passthrough": _pixel_shuffle("passthrough_param", inverse=True),
    "pixelshuffle": _pixel_shuffle("pixel_shuffle_param", "pixelshuffle_param", inverse=False),
    "depthtospace": _pixel_shuffle("depth_to_space_param", inverse=False, data_format=True),
    "spacetodepth": _pixel_shuffle("space_to_depth_param", inverse=True, data_format=True),
    "resample": _resample,
    "flowwarp": _flow_warp,
}
