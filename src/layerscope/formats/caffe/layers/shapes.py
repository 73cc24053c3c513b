"""Layers that join, cut, reorder and reduce."""

from __future__ import annotations

from layerscope.formats.caffe.inputs import MOST_AXES
from layerscope.formats.caffe.layer import Layer
from layerscope.formats.caffe.layers.windows import fused_relu
from layerscope.graph import attributes as at

Tensors = tuple[str, ...]
FOUR = ("num", "channels", "height", "width")
# Behind Caffe's own those of Synopsys's fork; the rest are other forks', which have no number here.
OPERATIONS = ("PROD", "SUM", "MAX", "DIV", "MIN", "SUB")
REDUCTIONS = ("", "SUM", "ASUM", "SUMSQ", "MEAN")
REDUCED = {"SUM": "sum", "ASUM": "l1", "SUMSQ": "sum_square", "MEAN": "mean"}


def _concat(layer: Layer) -> Tensors:
    param = layer.param("concat_param")
    axis = param.whole("axis", param.whole("concat_dim", 1))
    return layer.add("concat", at.Concat(axis), layer.bottoms or (layer.x,))


def _eltwise(layer: Layer) -> Tensors:
    """A sum may weigh its inputs; one less the other is a difference."""
    param = layer.param("eltwise_param")
    operation = param.choice("operation", OPERATIONS, "SUM")
    bottoms = layer.bottoms or (layer.x,)
    weights = param.numbers("coeff")
    if param.whole("axis"):  # of Synopsys's fork: the second stands along axes from this one on
        return _along(layer, operation, param.whole("axis"))
    if operation != "SUM":
        made = layer.add(operation.lower() if operation != "PROD" else "mul", None, bottoms)
    elif len(bottoms) == 2 and weights == [1.0, -1.0]:
        made = layer.add("sub", None, bottoms)
    else:
        scaled = sum(abs(weight) != 1 for weight in weights)
        made = layer.add("add", at.Sum(scaled) if scaled else None, bottoms)
    return fused_relu(layer, param, made)


def _along(layer: Layer, operation: str, axis: int) -> Tensors:
    """A sum or product of maps and values along some of their axes."""
    if len(layer.bottoms) == 2 and operation == "PROD":
        return layer.add("scale", at.Scale(axis), layer.bottoms, blobs=())
    if len(layer.bottoms) == 2 and operation == "SUM":
        return layer.add("bias", at.Bias(axis), layer.bottoms, blobs=())
    return layer.unknown(infer="same", sizes=(0,), why=f"{operation} along axis {axis}")


def _slice(layer: Layer) -> Tensors:
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


def _split(layer: Layer) -> Tensors:
    """Copies are one tensor under several names."""
    return layer.add("identity") * max(len(layer.tops), 1)


def _implicit(layer: Layer) -> Tensors:
    """Netscope's own type, for a blob that no layer is named after: it passes on its input."""
    return layer.add("identity", None, layer.bottoms[:1])


def _flatten(layer: Layer) -> Tensors:
    param = layer.param("flatten_param")
    return layer.add("flatten", at.Flatten(param.whole("axis", 1), param.whole("end_axis", -1)))


def _reshape(layer: Layer) -> Tensors:
    """A new shape, or as some forks for super-resolution have it a pixel shuffle."""
    param = layer.param("reshape_param")
    factor = layer.positive(param, "pixelshuffler", 1)
    if factor > 1:
        return layer.add("pixel_shuffle", at.PixelShuffle(factor))
    shape = tuple(param.message("shape").wholes("dim"))
    if not shape and any(name in param for name in FOUR):  # as it was before there was `shape`
        shape = tuple(param.whole(name) for name in FOUR)
    if len(shape) > MOST_AXES:
        what = f"a shape of {len(shape)} axes, expected at most {MOST_AXES}"
        raise layer.error(what, param.message("shape"), "dim")
    return layer.add("reshape", at.Reshape(shape, param.whole("axis"), param.whole("num_axes", -1)))


def _permute(layer: Layer) -> Tensors:
    """Axes that are not named follow in their order; there are four unless more are."""
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


def _crop(layer: Layer) -> Tensors:
    param = layer.param("crop_param")
    offsets = tuple(param.wholes("offset")) or (0,)
    if len(offsets) > MOST_AXES:
        what = f"{len(offsets)} offsets, expected at most {MOST_AXES}"
        raise layer.error(what, param, "offset")
    told = at.Crop(param.whole("axis", 2), offsets, not layer.options.keep_going)
    return layer.add("crop", told, layer.bottoms[:2])


def _tile(layer: Layer) -> Tensors:
    param = layer.param("tile_param")
    return layer.add("tile", at.Tile(param.whole("axis", 1), layer.positive(param, "tiles")))


def _reduction(layer: Layer) -> Tensors:
    """Over all axes from `axis` on."""
    param = layer.param("reduction_param")
    kind = REDUCED[param.choice("operation", REDUCTIONS, "SUM")]
    told = at.Reduce((param.whole("axis"),), tail=True)
    if param.number("coeff", 1.0) == 1:
        return layer.add(f"reduce_{kind}", told)
    return layer.add("mul", None, layer.add(f"reduce_{kind}", told, part=kind))


def _arg_max(layer: Layer) -> Tensors:
    """The places of the largest along an axis, or of all that is not the batch; or their values."""
    param = layer.param("argmax_param")
    if param.flag("min_first"):
        return layer.unknown(why="the smallest first")
    best, values = layer.positive(param, "top_k", 1), param.flag("out_max_val")
    if "axis" in param:
        axis = param.whole("axis")
        if best == 1 and not values:
            return layer.add("arg_max", at.Reduce((axis,), keep=True))
        return layer.add("top_k", at.TopK(best, axis), outputs=2)[not values :][:1]
    flat = layer.add("flatten", at.Flatten(), part="flatten")
    if best == 1 and not values:
        made = layer.add("arg_max", at.Reduce((1,), keep=True), flat, part="best")
    else:
        both = layer.add("top_k", at.TopK(best, 1), flat, part="best", outputs=2)
        made = (
            (both[1],)
            if not values
            else layer.add("concat", at.Concat(1), both[::-1], part="pairs")
        )
    return layer.add("reshape", at.Reshape((0, 1 + values, best)), made)


def _batch_reindex(layer: Layer) -> Tensors:
    return layer.add("gather", at.Gather(0), layer.bottoms[:2])


def _shuffle(layer: Layer) -> Tensors:
    param = layer.param("shuffle_channel_param", "channel_shuffle_param")
    return layer.add("channel_shuffle", at.ChannelShuffle(layer.positive(param, "group", 1)))


def _axpy(layer: Layer) -> Tensors:
    return layer.add("axpy", None, layer.bottoms[:3])


LAYERS = {
    "concat": _concat,
    "eltwise": _eltwise,
    "slice": _slice,
    "split": _split,
    "implicit": _implicit,
    "flatten": _flatten,
    "reshape": _reshape,
    "permute": _permute,
    "crop": _crop,
    "tile": _tile,
    "reduction": _reduction,
    "argmax": _arg_max,
    "batchreindex": _batch_reindex,
    "shufflechannel": _shuffle,
    "axpy": _axpy,
}
