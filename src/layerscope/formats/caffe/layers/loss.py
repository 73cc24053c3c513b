"""Losses and accuracy. Labels are an input only if their shape is known."""

from __future__ import annotations

from layerscope.formats.caffe.layer import CaffeLayer, Converter, Tensors
from layerscope.graph import attributes as at


def _axis(layer: CaffeLayer, param: str = "softmax_param") -> at.Softmax:
    return at.Softmax(layer.param(param).whole("axis", 1))


def _softmax_loss(layer: CaffeLayer) -> Tensors:
    """The loss; with a second top also the probabilities."""
    attrs = _axis(layer)
    if len(layer.tops) == 2:
        prob = layer.add("softmax", attrs, part="prob")
        return (*layer.add("log_loss", attrs, (*prob, *layer.labelled()[1:])), *prob)
    return layer.add("softmax_loss", attrs, layer.labelled())


def _softmax_loss_ohem(layer: CaffeLayer) -> Tensors:
    """R-FCN's hard example mining: the loss, the probabilities, and the loss of each region."""
    if len(layer.tops) < 3:
        return _softmax_loss(layer)
    attrs = _axis(layer)
    prob = layer.add("softmax", attrs, part="prob")
    loss = layer.add("log_loss", attrs, (*prob, *layer.labelled()[1:]))
    return (*loss, *prob, *layer.add("slice", at.Slice((1,), (0,), (1,)), prob, part="regions"))


def _smooth_l1_loss_ohem(layer: CaffeLayer) -> Tensors:
    """R-FCN's hard example mining: the loss, and the loss of each region."""
    loss = layer.add("smooth_l1_loss", None, layer.labelled())
    if len(layer.tops) < 2:
        return loss
    return (*loss, *layer.add("reduce_sum", at.Reduce((1,), keep=True), part="regions"))


def _l1_loss(layer: CaffeLayer) -> Tensors:
    """FlowNet's fork can take the norm at each position first."""
    if layer.param("l1_loss_param").flag("l2_per_location"):
        return layer.unknown([()], why="a norm of every position in the loss")
    return layer.add("l1_loss", None, layer.labelled())


def _along_axis(op: str, param: str = "softmax_param") -> Converter:
    """A loss over the classes along an axis."""
    return lambda layer: layer.add(op, _axis(layer, param), layer.labelled())


def _per_element(op: str) -> Converter:
    """A loss between prediction and target of the same shape."""
    return lambda layer: layer.add(op, None, layer.labelled())


def _contrastive(layer: CaffeLayer) -> Tensors:
    if len(layer.bottoms) < 2:
        return layer.unknown([()], why="a contrast of one blob")
    return layer.add("contrastive_loss", None, layer.bottoms[:2])


LAYERS: dict[str, Converter] = {
    "softmaxwithloss": _softmax_loss,
    "accuracy": _along_axis("accuracy", "accuracy_param"),
    "multinomiallogisticloss": _along_axis("log_loss"),
    "infogainloss": _along_axis("infogain_loss", "infogain_loss_param"),
    "euclideanloss": _per_element("mse_loss"),
    "hingeloss": _per_element("hinge_loss"),
    "sigmoidcrossentropyloss": _per_element("sigmoid_cross_entropy"),
    "l1loss": _l1_loss,
    "smoothl1loss": _per_element("smooth_l1_loss"),
    "smoothl1lossohem": _smooth_l1_loss_ohem,
    "softmaxwithlossohem": _softmax_loss_ohem,
    "contrastiveloss": _contrastive,
}
