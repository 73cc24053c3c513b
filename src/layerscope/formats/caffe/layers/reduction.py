"""Sums, means, norms and extremes over axes."""

from __future__ import annotations

from layerscope.formats.caffe.layer import CaffeLayer, Converter, Tensors
from layerscope.graph import attributes as at

REDUCTIONS = ("", "SUM", "ASUM", "SUMSQ", "MEAN")
REDUCED = {"SUM": "sum", "ASUM": "l1", "SUMSQ": "sum_square", "MEAN": "mean"}


def _reduction(layer: CaffeLayer) -> Tensors:
    """Caffe's Reduction, over all axes from `axis` on."""
    param = layer.param("reduction_param")
    kind = REDUCED[param.choice("operation", REDUCTIONS, "SUM")]
    attrs = at.Reduce((param.whole("axis"),), tail=True)
    if param.number("coeff", 1.0) == 1:
        return layer.add(f"reduce_{kind}", attrs)
    return layer.add("mul", None, layer.add(f"reduce_{kind}", attrs, part=kind))


def _reduce(op: str, param_name: str, *, keep: bool = False) -> Converter:
    """A reduction of forks for networks of TensorFlow and ONNX, over the axes that are given."""

    def convert(layer: CaffeLayer) -> Tensors:
        param = layer.param(param_name)
        axes = tuple(param.wholes("axis") or param.wholes("axes"))
        return layer.add(op, at.Reduce(axes, keep=param.flag("keepdims", keep)))

    return convert


def _arg_max(layer: CaffeLayer) -> Tensors:
    """Indices of the top_k largest along an axis, or of all axes but the batch; or their values."""
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
        result = layer.add("arg_max", at.Reduce((1,), keep=True), flat, part="best")
    else:
        both = layer.add("top_k", at.TopK(best, 1), flat, part="best", outputs=2)
        result = both[1:]
        if values:
            result = layer.add("concat", at.Concat(1), both[::-1], part="pairs")
    return layer.add("reshape", at.Reshape((0, 1 + values, best)), result)


def _channel_norm(layer: CaffeLayer) -> Tensors:
    """FlowNet's: the Euclidean norm over the channels at each position."""
    return layer.add("reduce_l2", at.Reduce((1,), keep=True))


LAYERS: dict[str, Converter] = {
    "reduction": _reduction,
    "argmax": _arg_max,
    "channelnorm": _channel_norm,
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
