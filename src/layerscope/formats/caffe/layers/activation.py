"""Activations and other functions of one element, and softmax."""

from __future__ import annotations

from collections.abc import Sequence
from math import e, isclose, log

from layerscope.codecs.message import Message
from layerscope.formats.caffe.layer import CaffeLayer, Converter, Tensors
from layerscope.graph import attributes as at


def _function(op: str) -> Converter:
    """A converter for a function without settings."""
    return lambda layer: layer.add(op, at.Activation(in_place=layer.in_place))


def _relu(layer: CaffeLayer) -> Tensors:
    """ReLU; with a negative slope a leaky one, in Synopsys's fork with limits a clip."""
    param = layer.param("relu_param", "leaky_relu_param")
    slope, limit = param.number("negative_slope"), param.number("maximum")
    if param.flag("relu6") and not slope:
        return _function("relu6")(layer)
    if limit and not slope:
        return layer.add("clip", at.Activation(param.number("minimum"), limit, layer.in_place))
    if limit or param.flag("relu6") or param.number("minimum"):
        return layer.unknown(infer="same", sizes=(0,), why="a slope and limits")
    if slope:
        return layer.add("leaky_relu", at.Activation(alpha=slope, in_place=layer.in_place))
    return _function("relu")(layer)


def fused_relu(layer: CaffeLayer, param: Message, outputs: Sequence[str]) -> Tensors:
    """Add the ReLU that Intel's fork fuses into a layer whose settings have `relu: true`."""
    if not param.flag("relu"):
        return tuple(outputs)
    slope = param.number("negative_slope")
    op, attrs = ("leaky_relu", at.Activation(alpha=slope)) if slope else ("relu", at.Activation())
    parts = ["relu", *(f"relu{n}" for n in range(2, len(outputs) + 1))]
    return tuple(
        layer.add(op, attrs, (x,), part=part)[0] for x, part in zip(outputs, parts, strict=True)
    )


def _elu(layer: CaffeLayer) -> Tensors:
    alpha = layer.param("elu_param").number("alpha", 1.0)
    return layer.add("elu", at.Activation(alpha=alpha, in_place=layer.in_place))


def _prelu(layer: CaffeLayer) -> Tensors:
    return layer.add("prelu", at.PReLU(layer.param("prelu_param").flag("channel_shared")))


def _clip(layer: CaffeLayer) -> Tensors:
    param = layer.param("clip_param")
    attrs = at.Activation(param.number("min"), param.number("max"), layer.in_place)
    return layer.add("clip", attrs)


def _threshold(layer: CaffeLayer) -> Tensors:
    limit = layer.param("threshold_param").number("threshold")
    return layer.add("threshold", at.Activation(alpha=limit, in_place=layer.in_place))


def _swish(layer: CaffeLayer) -> Tensors:
    """X · sigmoid(beta · x)."""
    beta = layer.param("swish_param").number("beta", 1.0)
    if beta == 1:
        return _function("silu")(layer)
    gate = layer.add("sigmoid", at.Activation(), _scaled(layer, layer.x, beta), part="gate")
    return layer.add("mul", None, (layer.x, *gate))


def _concatenated_relu(layer: CaffeLayer) -> Tensors:
    """ReLU of x beside ReLU of -x, as twice as many channels."""
    param = layer.param("crelu_param")
    negative = layer.add("neg", at.Activation(), part="negative")
    above = layer.add("relu", at.Activation(), part="above")
    below = layer.add("relu", at.Activation(), negative, part="below")
    return layer.add("concat", at.Concat(param.whole("concat_axis", 1)), (*above, *below))


def _scaled(layer: CaffeLayer, x: str, by: float, part: str = "scale") -> Tensors:
    return (x,) if by == 1 else layer.add("mul", None, (x,), part=part)


def _exp(layer: CaffeLayer) -> Tensors:
    """Base ^ (shift + scale · x) = base ^ shift · e ^ (scale · ln base · x)."""
    param = layer.param("exp_param")
    base, shift = param.number("base", -1.0), param.number("shift")
    natural = 1.0 if base <= 0 or isclose(base, e) else log(base)
    x = _scaled(layer, layer.x, param.number("scale", 1.0) * natural)
    if shift == 0:
        return layer.add("exp", at.Activation(), x)
    return layer.add("mul", None, layer.add("exp", at.Activation(), x, part="exp"))


def _log(layer: CaffeLayer) -> Tensors:
    """Log of shift + scale · x, to any base."""
    param = layer.param("log_param")
    base = param.number("base", -1.0)
    x = _scaled(layer, layer.x, param.number("scale", 1.0))
    if param.number("shift") != 0:
        x = layer.add("add", None, x, part="shift")
    if base <= 0 or isclose(base, e):
        return layer.add("log", at.Activation(), x)
    return layer.add("mul", None, layer.add("log", at.Activation(), x, part="log"))


def _softmax(layer: CaffeLayer) -> Tensors:
    return layer.add("softmax", at.Softmax(layer.param("softmax_param").whole("axis", 1)))


LAYERS: dict[str, Converter] = {
    "relu": _relu,
    "relu6": _function("relu6"),
    "prelu": _prelu,
    "elu": _elu,
    "selu": _function("selu"),
    "sigmoid": _function("sigmoid"),
    "tanh": _function("tanh"),
    "swish": _swish,
    "hardswish": _function("hard_swish"),
    "hardsigmoid": _function("hard_sigmoid"),
    "gelu": _function("gelu"),
    "bnll": _function("softplus"),
    "softplus": _function("softplus"),
    "absval": _function("abs"),
    "crelu": _concatenated_relu,
    "mish": _function("mish"),
    "softsign": _function("softsign"),
    "sqrt": _function("sqrt"),
    "rsqrt": _function("rsqrt"),
    "square": _function("square"),
    "neg": _function("neg"),
    "reciprocal": _function("reciprocal"),
    "floor": _function("floor"),
    "ceil": _function("ceil"),
    "round": _function("round"),
    "sign": _function("sign"),
    "sin": _function("sin"),
    "cos": _function("cos"),
    "tan": _function("tan"),
    "erf": _function("erf"),
    "clip": _clip,
    "threshold": _threshold,
    "exp": _exp,
    "log": _log,
    "softmax": _softmax,
}
