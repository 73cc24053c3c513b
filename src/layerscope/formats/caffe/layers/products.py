"""Layers that multiply by matrices: inner products, tables, recurrence."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.formats.caffe.layer import Layer
from layerscope.graph import attributes as at

Tensors = tuple[str, ...]
STATIC = {
    "caffe_lstm": ("weight_x", "bias", "weight_static", "weight_h"),
    "caffe_rnn": ("weight_x", "bias", "weight_static", "weight_h", "weight_o", "bias_o"),
}


def _inner_product(layer: Layer) -> Tensors:
    """All axes from `axis` on are one; how the matrix is stored makes no difference."""
    param = layer.param("inner_product_param")
    bias, axis = param.flag("bias_term", True), param.whole("axis", 1)
    features = layer.positive(param, "num_output")
    return layer.add("linear", at.Linear(features, bias, flatten=True, axis=axis))


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
            return layer.unknown()
        if param.flag("expose_hidden") or not 2 <= len(layer.bottoms) <= 3:
            return layer.unknown()
        hidden = layer.positive(param, "num_output")
        blobs = STATIC[op] if static else None
        return layer.add(op, at.Unrolled(hidden, static), layer.bottoms, blobs=blobs)

    return make


LAYERS = {
    "innerproduct": _inner_product,
    "embed": _embed,
    "lstm": _recurrent("caffe_lstm"),
    "rnn": _recurrent("caffe_rnn"),
}
