"""Normalization layers, and the scale and bias layers that follow them."""

from __future__ import annotations

from layerscope.formats.caffe.layer import CaffeLayer, Converter, Tensors
from layerscope.formats.caffe.layers.activation import fused_relu
from layerscope.graph import attributes as at

REGIONS = ("ACROSS_CHANNELS", "WITHIN_CHANNEL")
AFFINE = ("weight", "bias", "running_mean", "running_var")


def _batch_norm(layer: CaffeLayer) -> Tensors:
    """Caffe's has statistics only; forks of NVIDIA and Intel can include scale and shift."""
    param = layer.param("batch_norm_param", "bn_param")
    affine = param.flag("scale_bias") or param.flag("use_weight_bias")
    scale = not affine or not ("bias_term" in param and not param.flag("bias_term"))
    if not scale:
        return layer.unknown(infer="same", sizes=(0,), why="a scale without a shift")
    result = layer.add("batch_norm", at.BatchNorm(affine, param.number("eps", 1e-5)))
    if affine:
        layer.name_blobs((*AFFINE[2:], "", *AFFINE[:2]))
    return fused_relu(layer, param, result)


def _bn(layer: CaffeLayer) -> Tensors:
    """A fork's layer with scale, shift and statistics; SegNet's INFERENCE mode has folded them."""
    param = layer.param("bn_param", "batch_norm_param")
    if param.choice("bn_mode", ("LEARN", "INFERENCE"), "LEARN") == "INFERENCE":
        return layer.add("scale", at.Scale(bias=True))
    result = layer.add("batch_norm", at.BatchNorm(True, param.number("eps", 1e-5)))
    layer.name_blobs(AFFINE)
    return result


def _lrn(layer: CaffeLayer) -> Tensors:
    param = layer.param("lrn_param")
    attrs = at.LocalResponseNorm(
        layer.positive(param, "local_size", 5),
        param.number("alpha", 1.0),
        param.number("beta", 0.75),
        param.number("k", 1.0),
        param.choice("norm_region", REGIONS, REGIONS[0]) == REGIONS[1],
    )
    return layer.add("lrn", attrs)


def _mvn(layer: CaffeLayer) -> Tensors:
    param = layer.param("mvn_param")
    variance, eps = param.flag("normalize_variance", True), param.number("eps", 1e-9)
    if param.flag("across_channels"):
        return layer.add("layer_norm", at.LayerNorm(1, False, eps=eps, variance=variance))
    return layer.add("instance_norm", at.InstanceNorm(False, eps, variance))


def _normalize(layer: CaffeLayer) -> Tensors:
    """SSD's L2 norm with a learned scale; another fork's `Normalize` has a type and no scale."""
    param = layer.param("norm_param", "normalize_param")
    if any(name in param for name in ("normalize_type", "fix_gradient", "bp_norm")):
        if param.text("normalize_type", "L2") != "L2":
            return layer.unknown(infer="same", sizes=(0,), why="a norm that is not Euclidean")
        return layer.add("l2_norm", at.L2Norm())
    axes = (1, 2, 3) if param.flag("across_spatial", True) else (1,)
    shared = param.flag("channel_shared", True)
    return layer.add("l2_norm", at.L2Norm(axes, True, shared, param.number("eps", 1e-10)))


def _l2_normalize(layer: CaffeLayer) -> Tensors:
    return layer.add("l2_norm", at.L2Norm())


def _scale(layer: CaffeLayer) -> Tensors:
    """Scale by learned values, or by a second bottom."""
    param = layer.param("scale_param")
    attrs = at.Scale(param.whole("axis", 1), param.flag("bias_term"), param.whole("num_axes", 1))
    result = layer.add("scale", attrs, layer.bottoms[:2])
    if len(layer.bottoms) > 1:
        layer.name_blobs(("bias",))
    return result


def _bias(layer: CaffeLayer) -> Tensors:
    param = layer.param("bias_param")
    attrs = at.Bias(param.whole("axis", 1), param.whole("num_axes", 1))
    return layer.add("bias", attrs, layer.bottoms[:2])


LAYERS: dict[str, Converter] = {
    "batchnorm": _batch_norm,
    "bn": _bn,
    "lrn": _lrn,
    "mvn": _mvn,
    "normalize": _normalize,
    "l2normalize": _l2_normalize,
    "scale": _scale,
    "bias": _bias,
}
