"""The first form of Caffe's files: `layers { layer { name type … } bottom top }`, settings flat."""

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
# Every message that later forms have for these settings.
PARAMS = (
    "convolution_param", "pooling_param", "inner_product_param", "lrn_param", "dropout_param",
    "concat_param", "data_param", "image_data_param", "window_data_param", "hdf5_data_param",
    "transform_param", "padding_param",
)  # fmt: skip


def upgraded(layer: Message) -> Message:
    """The same layer with its settings where later forms have them; any other as it is."""
    if "layer" not in layer:
        return layer
    inner = layer.message("layer")
    flat = Message(inner.origin, inner.at)
    flat.fields = {RENAMED.get(name, name): values for name, values in inner.fields.items()}
    made = Message(layer.origin, layer.at)
    made.fields = {name: values for name, values in layer.fields.items() if name != "layer"}
    for name in ("name", "type", "blobs"):
        if name in inner:
            made.fields[name] = inner.fields[name]
    for name in PARAMS:
        own = Message(inner.origin, inner.at)
        fields = SETTINGS.get(name)
        own.fields = {f: held for f, held in flat.fields.items() if fields is None or f in fields}
        made.fields[name] = [own]
    every = frozenset.union(LAYER, ANYWHERE, FLAT, *[SETTINGS.get(n, FLAT) for n in PARAMS])
    made.fields.update({f: held for f, held in flat.fields.items() if f not in every})
    return made
