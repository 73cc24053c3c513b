"""Caffe's LSTM and RNN, which Caffe unrolls over the time steps of their input."""

from __future__ import annotations

from layerscope.formats.caffe.layer import CaffeLayer, Converter, Tensors
from layerscope.graph import attributes as at

# Blobs of a layer with a third bottom, the static input x_static.
STATIC = {
    "caffe_lstm": ("weight_x", "bias", "weight_static", "weight_h"),
    "caffe_rnn": ("weight_x", "bias", "weight_static", "weight_h", "weight_o", "bias_o"),
}


def _recurrent(op: str) -> Converter:
    def convert(layer: CaffeLayer) -> Tensors:
        param = layer.param("recurrent_param")
        static = len(layer.bottoms) == 3
        if "recurrent_param" not in layer.message:  # a fork's own
            return layer.unknown(why="a recurrent layer of a fork")
        if param.flag("expose_hidden") or not 2 <= len(layer.bottoms) <= 3:
            return layer.unknown(why=f"expose_hidden, or {len(layer.bottoms)} bottoms")
        if param.flag("tf_rnn") or param.number("forget_bias"):
            return layer.unknown(why="settings of a fork for TensorFlow's recurrence")
        hidden = layer.positive(param, "num_output")
        outputs = layer.add(op, at.Unrolled(hidden, static), layer.bottoms)
        if static:
            layer.name_blobs(STATIC[op])
        return outputs

    return convert


LAYERS: dict[str, Converter] = {
    "lstm": _recurrent("caffe_lstm"),
    "rnn": _recurrent("caffe_rnn"),
}
