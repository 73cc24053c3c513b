"""V0 of Caffe's format: `layers { layer { name type … } bottom top }`, with flat settings."""

from __future__ import annotations

from layerscope.codecs.message import Message
from layerscope.formats.caffe.fields import ANYWHERE, FLAT, LAYER, SETTINGS

RENAMED = {
    "kernelsize": "kernel_size",
    "biasterm": "bias_term",
    "cropsize": "crop_size",
    "batchsize": "batch_size",
    "meanfile": "mean_file",
}
# Messages that have these settings in later versions.
PARAMS = (
    "convolution_param", "pooling_param", "inner_product_param", "lrn_param", "dropout_param",
    "concat_param", "data_param", "image_data_param", "window_data_param", "hdf5_data_param",
    "transform_param", "padding_param",
)  # fmt: skip


def upgraded(layer: Message) -> Message:
    """A V0 layer with its settings in the messages of later versions; other layers unchanged."""
    if "layer" not in layer:
        return layer
    inner = layer.message("layer")
    flat = Message(inner.locator, inner.at)
    flat.fields = {RENAMED.get(name, name): values for name, values in inner.fields.items()}
    result = Message(layer.locator, layer.at)
    result.fields = {name: values for name, values in layer.fields.items() if name != "layer"}
    for name in ("name", "type", "blobs"):
        if name in inner:
            result.fields[name] = inner.fields[name]
    for name in PARAMS:
        own = Message(inner.locator, inner.at)
        fields = SETTINGS.get(name)
        own.fields = {
            f: values for f, values in flat.fields.items() if fields is None or f in fields
        }
        result.fields[name] = [own]
    every = frozenset.union(LAYER, ANYWHERE, FLAT, *[SETTINGS.get(n, FLAT) for n in PARAMS])
    result.fields.update({f: values for f, values in flat.fields.items() if f not in every})
    return result
