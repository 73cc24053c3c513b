"""Softmax, losses and measures; labels whose shape the file does not tell are not read."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.formats.caffe.layer import Layer
from layerscope.graph import attributes as at

Tensors = tuple[str, ...]


def _softmax_told(layer: Layer, *names: str) -> at.Softmax:
    return at.Softmax(layer.param(*names).whole("axis", 1))


def _softmax(layer: Layer) -> Tensors:
    return layer.add("softmax", _softmax_told(layer, "softmax_param"))


def _softmax_loss(layer: Layer) -> Tensors:
    """With a second top it also gives the probabilities."""
    told = _softmax_told(layer, "softmax_param")
    if len(layer.tops) == 2:
        made = layer.add("softmax", told, part="prob")
        return (*layer.add("log_loss", told, (*made, *layer.labelled()[1:])), *made)
    return layer.add("softmax_loss", told, layer.labelled())


def _hard_softmax_loss(layer: Layer) -> Tensors:
    """R-FCN's: the loss, the probabilities, and the loss of every region by itself."""
    if len(layer.tops) < 3:
        return _softmax_loss(layer)
    told = _softmax_told(layer, "softmax_param")
    made = layer.add("softmax", told, part="prob")
    loss = layer.add("log_loss", told, (*made, *layer.labelled()[1:]))
    return (*loss, *made, *layer.add("slice", at.Slice((1,), (0,), (1,)), made, part="regions"))


def _hard_box_loss(layer: Layer) -> Tensors:
    """R-FCN's: the loss, and that of every region by itself."""
    loss = layer.add("smooth_l1_loss", None, layer.labelled())
    if len(layer.tops) < 2:
        return loss
    return (*loss, *layer.add("reduce_sum", at.Reduce((1,), keep=True), part="regions"))


def _l1_loss(layer: Layer) -> Tensors:
    """FlowNet's may take the norm of every position first."""
    if layer.param("l1_loss_param").flag("l2_per_location"):
        return layer.unknown([()], why="a norm of every position in the loss")
    return layer.add("l1_loss", None, layer.labelled())


def _rows(op: str, param: str = "softmax_param") -> Callable[[Layer], Tensors]:
    return lambda layer: layer.add(op, _softmax_told(layer, param), layer.labelled())


def _pairs(op: str) -> Callable[[Layer], Tensors]:
    return lambda layer: layer.add(op, None, layer.labelled())


def _contrastive(layer: Layer) -> Tensors:
    if len(layer.bottoms) < 2:
        return layer.unknown([()], why="a contrast of one blob")
    return layer.add("contrastive_loss", None, layer.bottoms[:2])


LAYERS = {
    "softmax": _softmax,
    "softmaxwithloss": _softmax_loss,
    "accuracy": _rows("accuracy", "accuracy_param"),
    "multinomiallogisticloss": _rows("log_loss"),
    "infogainloss": _rows("infogain_loss", "infogain_loss_param"),
    "euclideanloss": _pairs("mse_loss"),
    "hingeloss": _pairs("hinge_loss"),
    "sigmoidcrossentropyloss": _pairs("sigmoid_cross_entropy"),
    "l1loss": _l1_loss,
    "smoothl1loss": _pairs("smooth_l1_loss"),
    "smoothl1lossohem": _hard_box_loss,
    "softmaxwithlossohem": _hard_softmax_loss,
    "contrastiveloss": _contrastive,
}
