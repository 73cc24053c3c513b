"""Layers that multiply by matrices: inner products, tables, recurrence."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.formats.caffe.layer import Layer
from layerscope.formats.caffe.layers.windows import fused_relu
from layerscope.graph import attributes as at

Tensors = tuple[str, ...]
PRODUCTS = ("inner_product_param", "squeeze_inner_product_param", "cinner_product_param")
MASKED = ("squeezeinnerproduct", "cinnerproduct")  # which store a mask behind each array
STATIC = {
    "caffe_lstm": ("weight_x", "bias", "weight_static", "weight_h"),
    "caffe_rnn": ("weight_x", "bias", "weight_static", "weight_h", "weight_o", "bias_o"),
}


def _inner_product(layer: Layer) -> Tensors:
    """All axes from `axis` on are one; how the matrix is stored makes no difference."""
    param = layer.param(*PRODUCTS)
    bias, axis = param.flag("bias_term", True), param.whole("axis", 1)
    features = layer.positive(param, "num_output")
    masked = ("weight", "bias", "", "") if layer.kind in MASKED else None
    told = at.Linear(features, bias, flatten=True, axis=axis)
    return fused_relu(layer, param, layer.add("linear", told, blobs=masked))


def _margin_product(layer: Layer) -> Tensors:
    """Products that a margin changes at the class of each label, in training alone."""
    param = layer.param("largemargin_inner_product_param", "margin_inner_product_param")
    features = layer.positive(param, "num_output")
    if layer.kind == "largemargininnerproduct" and layer.options.phase == "test":
        return layer.add("linear", at.Linear(features, False, flatten=True))
    return layer.unknown(infer="features", sizes=(features,), why="angles beside the products")


def _embed(layer: Layer) -> Tensors:
    param = layer.param("embed_param")
    rows = layer.positive(param, "input_dim")
    features = layer.positive(param, "num_output")
    made = layer.add("embedding", at.Embedding(rows, features))
    if param.flag("bias_term", True):
        made = layer.add("bias", at.Bias(axis=-1), made, part="bias", blobs=("", "bias"))
    return made


def _recurrent(op: str) -> Callable[[Layer], Tensors]:
    def make(layer: Layer) -> Tensors:
        param = layer.param("recurrent_param")
        static = len(layer.bottoms) == 3
        if "recurrent_param" not in layer.message:  # a fork's own
            return layer.unknown(why="a recurrent layer of a fork")
        if param.flag("expose_hidden") or not 2 <= len(layer.bottoms) <= 3:
            return layer.unknown(why=f"expose_hidden, or {len(layer.bottoms)} bottoms")
        if param.flag("tf_rnn") or param.number("forget_bias"):
            return layer.unknown(why="settings of a fork for TensorFlow's recurrence")
        hidden = layer.positive(param, "num_output")
        blobs = STATIC[op] if static else None
        return layer.add(op, at.Unrolled(hidden, static), layer.bottoms, blobs=blobs)

    return make


LAYERS = {
    "innerproduct": _inner_product,
    "squeezeinnerproduct": _inner_product,
    "cinnerproduct": _inner_product,
    "largemargininnerproduct": _margin_product,
    "margininnerproduct": _margin_product,
    "embed": _embed,
    "lstm": _recurrent("caffe_lstm"),
    "rnn": _recurrent("caffe_rnn"),
}
