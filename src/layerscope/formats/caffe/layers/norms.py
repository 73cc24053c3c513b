"""Layers that normalise, scale and shift."""

from __future__ import annotations

from layerscope.formats.caffe.layer import Layer
from layerscope.formats.caffe.layers.windows import fused_relu
from layerscope.graph import attributes as at

Tensors = tuple[str, ...]
REGIONS = ("ACROSS_CHANNELS", "WITHIN_CHANNEL")
AFFINE = ("weight", "bias", "running_mean", "running_var")


def _batch_norm(layer: Layer) -> Tensors:
    """Statistics alone; the forks of NVIDIA and Intel can have scale and shift in it."""
    param = layer.param("batch_norm_param", "bn_param")
    affine = param.flag("scale_bias") or param.flag("use_weight_bias")
    scale = not affine or not ("bias_term" in param and not param.flag("bias_term"))
    if not scale:
        return layer.unknown(infer="same", sizes=(0,), why="a scale without a shift")
    told = at.BatchNorm(affine, param.number("eps", 1e-5))
    blobs = (*AFFINE[2:], "", *AFFINE[:2]) if affine else None
    return fused_relu(layer, param, layer.add("batch_norm", told, blobs=blobs))


def _bn(layer: Layer) -> Tensors:
    """Of forks: scale, shift and statistics; SegNet's keeps no statistics in its last form."""
    param = layer.param("bn_param", "batch_norm_param")
    if param.choice("bn_mode", ("LEARN", "INFERENCE"), "LEARN") == "INFERENCE":
        return layer.add("scale", at.Scale(bias=True))
    return layer.add("batch_norm", at.BatchNorm(True, param.number("eps", 1e-5)), blobs=AFFINE)


def _lrn(layer: Layer) -> Tensors:
    param = layer.param("lrn_param")
    told = at.LocalResponseNorm(
        layer.positive(param, "local_size", 5),
        param.number("alpha", 1.0),
        param.number("beta", 0.75),
        param.number("k", 1.0),
        param.choice("norm_region", REGIONS, REGIONS[0]) == REGIONS[1],
    )
    return layer.add("lrn", told)


def _mvn(layer: Layer) -> Tensors:
    param = layer.param("mvn_param")
    variance, eps = param.flag("normalize_variance", True), param.number("eps", 1e-9)
    if param.flag("across_channels"):
        return layer.add("layer_norm", at.LayerNorm(1, False, eps=eps, variance=variance))
    return layer.add("instance_norm", at.InstanceNorm(False, eps, variance))


def _normalize(layer: Layer) -> Tensors:
    """SSD's, with a learned scale; another fork's of the same name has a type instead of one."""
    param = layer.param("norm_param", "normalize_param")
    if any(name in param for name in ("normalize_type", "fix_gradient", "bp_norm")):
        if param.text("normalize_type", "L2") != "L2":
            return layer.unknown(infer="same", sizes=(0,), why="a norm that is not Euclidean")
        return layer.add("l2_norm", at.L2Norm())
    axes = (1, 2, 3) if param.flag("across_spatial", True) else (1,)
    shared = param.flag("channel_shared", True)
    return layer.add("l2_norm", at.L2Norm(axes, True, shared, param.number("eps", 1e-10)))


def _l2_normalize(layer: Layer) -> Tensors:
    return layer.add("l2_norm", at.L2Norm())


def _channel_norm(layer: Layer) -> Tensors:
    """FlowNet's: the Euclidean norm of every position."""
    return layer.add("reduce_l2", at.Reduce((1,), keep=True))


def _scale(layer: Layer) -> Tensors:
    """By learned values, or by those of a second bottom, which then are the first's own axes."""
    param = layer.param("scale_param")
    told = at.Scale(param.whole("axis", 1), param.flag("bias_term"), param.whole("num_axes", 1))
    blobs = ("bias",) if len(layer.bottoms) > 1 else None
    return layer.add("scale", told, layer.bottoms[:2], blobs=blobs)


def _bias(layer: Layer) -> Tensors:
    param = layer.param("bias_param")
    told = at.Bias(param.whole("axis", 1), param.whole("num_axes", 1))
    return layer.add("bias", told, layer.bottoms[:2])


LAYERS = {
    "batchnorm": _batch_norm,
    "bn": _bn,
    "lrn": _lrn,
    "mvn": _mvn,
    "normalize": _normalize,
    "l2normalize": _l2_normalize,
    "channelnorm": _channel_norm,
    "scale": _scale,
    "bias": _bias,
}
