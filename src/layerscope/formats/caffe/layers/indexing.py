"""Embeddings, and rows of a batch by index."""

from __future__ import annotations

from layerscope.formats.caffe.layer import CaffeLayer, Converter, Tensors
from layerscope.graph import attributes as at


def _embed(layer: CaffeLayer) -> Tensors:
    param = layer.param("embed_param")
    rows = layer.positive(param, "input_dim")
    features = layer.positive(param, "num_output")
    result = layer.add("embedding", at.Embedding(rows, features))
    if param.flag("bias_term", True):
        result = layer.add("bias", at.Bias(axis=-1), result, part="bias")
        layer.name_blobs(("", "bias"))
    return result


def _batch_reindex(layer: CaffeLayer) -> Tensors:
    return layer.add("gather", at.Gather(0), layer.bottoms[:2])


LAYERS: dict[str, Converter] = {
    "embed": _embed,
    "batchreindex": _batch_reindex,
}
