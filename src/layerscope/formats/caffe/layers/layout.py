"""Layers that keep their numbers: reshape, permute, tile, pad, dropout and identities."""

from __future__ import annotations

from layerscope.formats.caffe.inputs import MOST_AXES
from layerscope.formats.caffe.layer import CaffeLayer, Converter, Tensors
from layerscope.graph import attributes as at

FOUR = ("num", "channels", "height", "width")
FILLINGS: dict[str, at.Filling] = {
    "CONSTANT": "constant", "REFLECT": "reflect", "SYMMETRIC": "edge", "EDGE": "edge",
}  # fmt: skip


def _identity(layer: CaffeLayer) -> Tensors:
    """Layers that only change gradients."""
    return layer.add("identity")


def _split(layer: CaffeLayer) -> Tensors:
    """Copies are one tensor under several names."""
    return layer.add("identity") * max(len(layer.tops), 1)


def _implicit(layer: CaffeLayer) -> Tensors:
    """A type of Netscope's for a blob that no layer is named after: the input, unchanged."""
    return layer.add("identity", None, layer.bottoms[:1])


def _dropout(layer: CaffeLayer) -> Tensors:
    ratio = layer.param("dropout_param", "spatial_dropout_param").number("dropout_ratio", 0.5)
    return layer.add("dropout", at.Dropout(ratio, layer.in_place))


def _flatten(layer: CaffeLayer) -> Tensors:
    param = layer.param("flatten_param")
    return layer.add("flatten", at.Flatten(param.whole("axis", 1), param.whole("end_axis", -1)))


def _reshape(layer: CaffeLayer) -> Tensors:
    """A new shape; in some forks for super-resolution a pixel shuffle."""
    param = layer.param("reshape_param")
    factor = layer.positive(param, "pixelshuffler", 1)
    if factor > 1:
        return layer.add("pixel_shuffle", at.PixelShuffle(factor))
    shape = tuple(param.message("shape").wholes("dim"))
    if not shape and any(name in param for name in FOUR):  # from before `shape` was a field
        shape = tuple(param.whole(name) for name in FOUR)
    if len(shape) > MOST_AXES:
        what = f"a shape of {len(shape)} axes, expected at most {MOST_AXES}"
        raise layer.error(what, param.message("shape"), "dim")
    return layer.add("reshape", at.Reshape(shape, param.whole("axis"), param.whole("num_axes", -1)))


def _squeeze(layer: CaffeLayer) -> Tensors:
    """Remove axes of size 1, the last one first so that the others keep their index."""
    axes = layer.param("squeeze_param").wholes("axis")
    if not axes or len(axes) > MOST_AXES or min(axes) < 0:
        return layer.unknown(why="axes that depend on the shape")
    result: Tensors = (layer.x,)
    order = sorted(set(axes), reverse=True)
    for n, axis in enumerate(order, 1):
        part = "" if n == len(order) else f"axis {axis}"
        result = layer.add("reshape", at.Reshape((), axis, 1), result, part=part)
    return result


def _expand_dims(layer: CaffeLayer) -> Tensors:
    """Insert axes of size 1, the first one first."""
    axes = layer.param("expand_dims_nd_param", "expand_dims_param").wholes("axis")
    if not axes or len(axes) > MOST_AXES or min(axes) < 0:
        return layer.unknown(why="axes that depend on the shape")
    result: Tensors = (layer.x,)
    order = sorted(set(axes))
    for n, axis in enumerate(order, 1):
        part = "" if n == len(order) else f"axis {axis}"
        result = layer.add("reshape", at.Reshape((1,), axis, 0), result, part=part)
    return result


def _permute(layer: CaffeLayer) -> Tensors:
    """Axes that `order` leaves out follow in ascending order, up to the rank of the input."""
    param = layer.param("permute_param", "transpose_param")
    order = param.wholes("order") or param.wholes("dim")
    if len(order) > MOST_AXES:
        raise layer.error(f"an order of {len(order)} axes, expected at most {MOST_AXES}", param)
    for axis in order:
        if not 0 <= axis < MOST_AXES:
            raise layer.error(f"order {axis}, expected 0 to {MOST_AXES - 1}", param, "order")
    rank = max([layer.rank + 2, *(axis + 1 for axis in order)])
    rest = [axis for axis in range(rank) if axis not in order]
    return layer.add("permute", at.Permute((*order, *rest)))


def _tile(layer: CaffeLayer) -> Tensors:
    param = layer.param("tile_param")
    return layer.add("tile", at.Tile(param.whole("axis", 1), layer.positive(param, "tiles")))


def _repeat(layer: CaffeLayer) -> Tensors:
    param = layer.param("tile_nd_param")
    times = tuple(param.wholes("multiples"))
    if not times or min(times) < 1 or len(times) > MOST_AXES:
        raise layer.error(f"multiples {times[:8]}, expected from 1 on", param, "multiples")
    return layer.add("repeat", at.Repeat(times))


def _flip(layer: CaffeLayer) -> Tensors:
    return layer.add("flip", at.Flip((layer.param("reverse_param").whole("axis"),)))


def _channel_shuffle(layer: CaffeLayer) -> Tensors:
    param = layer.param("shuffle_channel_param", "channel_shuffle_param")
    return layer.add("channel_shuffle", at.ChannelShuffle(layer.positive(param, "group", 1)))


def _pad(layer: CaffeLayer) -> Tensors:
    """Pad height and width by the same on both sides, or every axis by a pair of `paddings`."""
    param = layer.param("padding_param", "pad_param", "mirror_pad_param")
    pairs = param.wholes("paddings")
    mode = FILLINGS.get(param.text("mode", "CONSTANT").upper())
    if mode is None:
        return layer.unknown(why=f"padding of mode {param.text('mode')[:40]}")
    if pairs:
        if len(pairs) % 2 or min(pairs) < 0 or len(pairs) > 2 * MOST_AXES:
            raise layer.error(f"paddings {pairs[:8]}, expected pairs from 0 on", param, "paddings")
        return layer.add("pad", at.Pad(tuple(zip(pairs[::2], pairs[1::2], strict=True)), mode))
    pad = param.whole("pad")
    if pad < 0:
        raise layer.error(f"pad {pad}, expected at least 0", param, "pad")
    high, wide = param.whole("pad_h", pad), param.whole("pad_w", pad)
    return layer.add("pad", at.Pad(((0, 0), (0, 0), (high, high), (wide, wide)), mode))


def _pad_channels(layer: CaffeLayer) -> Tensors:
    """Append channels of zeros, as in residual networks without projections."""
    more = layer.positive(layer.param("pad_channel_param"), "num_channels_to_pad", 1)
    return layer.add("pad", at.Pad(((0, 0), (0, more), (0, 0), (0, 0))))


LAYERS: dict[str, Converter] = {
    "gradientscaler": _identity,
    "gradientreversal": _identity,
    "stopgradient": _identity,
    "blockgradient": _identity,
    "noop": _identity,
    "split": _split,
    "implicit": _implicit,
    "dropout": _dropout,
    "flatten": _flatten,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "expanddimsnd": _expand_dims,
    "expanddims": _expand_dims,
    "permute": _permute,
    "tile": _tile,
    "tilend": _repeat,
    "reverse": _flip,
    "shufflechannel": _channel_shuffle,
    "padding": _pad,
    "pad": _pad,
    "mirrorpad": _pad,
    "padchannel": _pad_channels,
}
