"""Layers that forks add for networks converted from TensorFlow and ONNX."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.formats.caffe.inputs import MOST_AXES
from layerscope.formats.caffe.layer import Layer
from layerscope.graph import attributes as at

Tensors = tuple[str, ...]
FILLINGS: dict[str, at.Filling] = {
    "CONSTANT": "constant", "REFLECT": "reflect", "SYMMETRIC": "edge", "EDGE": "edge",
}  # fmt: skip


def _pairs(op: str) -> Callable[[Layer], Tensors]:
    """An element-wise function of two blobs, or of one and a constant."""
    return lambda layer: layer.add(op, None, layer.bottoms[:2] or (layer.x,))


def _reduce(op: str, param_name: str, *, keep: bool = False) -> Callable[[Layer], Tensors]:
    def make(layer: Layer) -> Tensors:
        param = layer.param(param_name)
        axes = tuple(param.wholes("axis") or param.wholes("axes"))
        return layer.add(op, at.Reduce(axes, keep=param.flag("keepdims", keep)))

    return make


def _padding(layer: Layer) -> Tensors:
    """The same on each side of the maps, or for every axis what stands before and behind."""
    param = layer.param("padding_param", "pad_param", "mirror_pad_param")
    told = param.wholes("paddings")
    mode = FILLINGS.get(param.text("mode", "CONSTANT").upper())
    if mode is None:
        return layer.unknown(why=f"padding of mode {param.text('mode')[:40]}")
    if told:
        if len(told) % 2 or min(told) < 0 or len(told) > 2 * MOST_AXES:
            raise layer.error(f"paddings {told[:8]}, expected pairs from 0 on", param, "paddings")
        return layer.add("pad", at.Pad(tuple(zip(told[::2], told[1::2], strict=True)), mode))
    pad = param.whole("pad")
    if pad < 0:
        raise layer.error(f"pad {pad}, expected at least 0", param, "pad")
    high, wide = param.whole("pad_h", pad), param.whole("pad_w", pad)
    return layer.add("pad", at.Pad(((0, 0), (0, 0), (high, high), (wide, wide)), mode))


def _pad_channels(layer: Layer) -> Tensors:
    """Channels of zeros behind the others, of residual networks without projections."""
    more = layer.positive(layer.param("pad_channel_param"), "num_channels_to_pad", 1)
    return layer.add("pad", at.Pad(((0, 0), (0, more), (0, 0), (0, 0))))


def _squeeze(layer: Layer) -> Tensors:
    """Axes of one taken out, the last first so that the others keep their number."""
    axes = layer.param("squeeze_param").wholes("axis")
    if not axes or len(axes) > MOST_AXES or min(axes) < 0:
        return layer.unknown(why="axes that depend on the shape")
    made: Tensors = (layer.x,)
    order = sorted(set(axes), reverse=True)
    for n, axis in enumerate(order, 1):
        part = "" if n == len(order) else f"axis {axis}"
        made = layer.add("reshape", at.Reshape((), axis, 1), made, part=part)
    return made


def _expand(layer: Layer) -> Tensors:
    """Axes of one put in, the first first."""
    axes = layer.param("expand_dims_nd_param", "expand_dims_param").wholes("axis")
    if not axes or len(axes) > MOST_AXES or min(axes) < 0:
        return layer.unknown(why="axes that depend on the shape")
    made: Tensors = (layer.x,)
    order = sorted(set(axes))
    for n, axis in enumerate(order, 1):
        part = "" if n == len(order) else f"axis {axis}"
        made = layer.add("reshape", at.Reshape((1,), axis, 0), made, part=part)
    return made


def _piece(layer: Layer) -> Tensors:
    """So many elements of every axis, from a first one on; -1 for all that follow."""
    param = layer.param("piece_param")
    starts, sizes = param.wholes("begin"), param.wholes("size")
    if len(starts) != len(sizes) or not starts or len(starts) > MOST_AXES or min(starts) < 0:
        raise layer.error(f"{len(starts)} times begin and {len(sizes)} times size", param)
    ends = [(1 << 31) - 1 if n == -1 else at + n for at, n in zip(starts, sizes, strict=True)]
    return layer.add("slice", at.Slice(tuple(range(len(starts))), tuple(starts), tuple(ends)))


def _strided_slice(layer: Layer) -> Tensors:
    """Ranges with a step; masks, which change what they mean, are left unknown."""
    param = layer.param("strided_slice_param")
    masks = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    if any(param.whole(f"{name}_mask") for name in masks):
        return layer.unknown(why="a slice with masks")
    starts, ends, steps = (param.wholes(name) for name in ("begin", "end", "strides"))
    axes = param.wholes("axes") or list(range(len(starts)))
    steps = steps or [1] * len(starts)
    if not starts or not len(starts) == len(ends) == len(steps) == len(axes) <= MOST_AXES:
        raise layer.error(f"a slice of {len(starts)} begins and {len(ends)} ends", param)
    told = at.Slice(tuple(axes), tuple(starts), tuple(ends), tuple(steps))
    return layer.add("slice", told)


def _repeat(layer: Layer) -> Tensors:
    param = layer.param("tile_nd_param")
    times = tuple(param.wholes("multiples"))
    if not times or min(times) < 1 or len(times) > MOST_AXES:
        raise layer.error(f"multiples {times[:8]}, expected from 1 on", param, "multiples")
    return layer.add("repeat", at.Repeat(times))


def _flip(layer: Layer) -> Tensors:
    return layer.add("flip", at.Flip((layer.param("reverse_param").whole("axis"),)))


def _mat_mul(layer: Layer) -> Tensors:
    """The product of two blobs over their last two axes."""
    param = layer.param("gemm_param", "matmul_param", "mat_mul_param")
    if len(layer.bottoms) != 2:
        return layer.unknown(why=f"a product of {len(layer.bottoms)} blobs, expected 2")
    told = at.MatMul(
        param.flag("transA") or param.flag("transpose_a"),
        param.flag("transB") or param.flag("transpose_b"),
    )
    made = layer.add("matmul", told, layer.bottoms, part="product" if _scaled(layer) else "")
    return layer.add("mul", None, made) if _scaled(layer) else made


def _scaled(layer: Layer) -> bool:
    return layer.param("gemm_param").number("alpha", 1.0) != 1


LAYERS = {
    "padding": _padding,
    "pad": _padding,
    "mirrorpad": _padding,
    "padchannel": _pad_channels,
    "squeeze": _squeeze,
    "expanddimsnd": _expand,
    "expanddims": _expand,
    "piece": _piece,
    "stridedslice": _strided_slice,
    "tilend": _repeat,
    "reverse": _flip,
    "matmul": _mat_mul,
    "gemm": _mat_mul,
    "maximum": _pairs("max"),
    "minimum": _pairs("min"),
    "realdiv": _pairs("div"),
    "reducesum": _reduce("reduce_sum", "reduce_sum_param"),
    "reducemean": _reduce("reduce_mean", "reduce_mean_param"),
    "reducemax": _reduce("reduce_max", "reduce_max_param"),
    "reducemin": _reduce("reduce_min", "reduce_min_param"),
    "reduceprod": _reduce("reduce_prod", "reduce_prod_param"),
    "reducel1": _reduce("reduce_l1", "reduce_l1_param", keep=True),
    "reducel2": _reduce("reduce_l2", "reduce_l2_param", keep=True),
    "reducelogsumexp": _reduce("reduce_log_sum_exp", "reduce_logsumexp_param"),
    "reduceall": _reduce("reduce_all", "reduce_all_param"),
    "reduceany": _reduce("reduce_any", "reduce_any_param"),
}
