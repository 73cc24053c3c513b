"""Convolutions, transposed and deformable ones, and im2col."""

from __future__ import annotations

from layerscope.formats.caffe.layer import CaffeLayer, Converter, Tensors
from layerscope.formats.caffe.layers.activation import fused_relu
from layerscope.formats.caffe.windows import window_3d, window_of
from layerscope.graph import attributes as at

CONVOLUTION = (
    "convolution_param", "convolution3d_param", "squeeze_convolution_param", "cconvolution_param",
    "deformable_convolution_param", "modulated_deformable_convolution_param",
)  # fmt: skip
# Forks for pruning store a mask behind each array.
MASKED = ("squeezeconvolution", "cconvolution")


def _convolution(op: str, *, depthwise: bool = False, is_3d: bool = False) -> Converter:
    def convert(layer: CaffeLayer) -> Tensors:
        """One node per bottom; all share the weights of the first."""
        param = layer.param(*CONVOLUTION)
        if param.whole("axis", 1) != 1:
            return layer.unknown(why=f"convolution along axis {param.whole('axis', 1)}")
        channels = layer.positive(param, "num_output")
        groups = layer.positive(param, "group", channels if depthwise else 1)
        window = (window_3d if is_3d else window_of)(layer, param)
        kind = at.Conv if op == "conv" else at.TransposedConv
        attrs = kind(window, channels, groups, param.flag("bias_term", True))
        outputs = list(layer.add(op, attrs))
        if layer.kind in MASKED:
            layer.name_blobs(("weight", "bias", "", ""))
        for n, bottom in enumerate(layer.bottoms[1 : max(len(layer.tops), 1)], 2):
            outputs += layer.add(op, attrs, (bottom,), part=str(n))
            first, again = layer.nodes[0], layer.nodes[-1]
            named = first.ties or {}
            again.ties = {p: named.get(p, f"{first.name}.{p}") for p in ("weight", "bias")}
        return fused_relu(layer, param, outputs)

    return convert


def _deformable(layer: CaffeLayer) -> Tensors:
    """Sampling positions are shifted by a second bottom and weighted by a third."""
    param = layer.param(*CONVOLUTION[::-1])
    if not 2 <= len(layer.bottoms) <= 3:
        return layer.unknown(why=f"{len(layer.bottoms)} bottoms, expected maps and offsets")
    if "deformable_group" not in param:
        return layer.unknown(why="no deformable_group, whose default is not the same in all forks")
    attrs = at.DeformConv(
        window_of(layer, param),
        layer.positive(param, "num_output"),
        layer.positive(param, "group", 1),
        param.flag("bias_term", True),
        layer.positive(param, "deformable_group"),
    )
    return layer.add("deform_conv", attrs, layer.bottoms)


def _im2col(layer: CaffeLayer) -> Tensors:
    return layer.add("im2col", at.Im2Col(window_of(layer, layer.param("convolution_param"))))


LAYERS: dict[str, Converter] = {
    "convolution": _convolution("conv"),
    "depthwiseconvolution": _convolution("conv", depthwise=True),
    "squeezeconvolution": _convolution("conv"),
    "cconvolution": _convolution("conv"),
    "deformableconvolution": _deformable,
    "modulateddeformableconvolution": _deformable,
    "convolution3d": _convolution("conv", is_3d=True),
    "deconvolution": _convolution("conv_transpose"),
    "depthwisedeconvolution": _convolution("conv_transpose", depthwise=True),
    "im2col": _im2col,
}
