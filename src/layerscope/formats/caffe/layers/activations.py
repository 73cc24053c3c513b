"""Layers that do one thing to every element."""

from __future__ import annotations

from collections.abc import Callable
from math import e, isclose, log

from layerscope.formats.caffe.layer import Layer
from layerscope.graph import attributes as at

Tensors = tuple[str, ...]


def _plain(op: str) -> Callable[[Layer], Tensors]:
    return lambda layer: layer.add(op, at.Activation(in_place=layer.in_place))


def _relu(layer: Layer) -> Tensors:
    """With a slope below zero, or as Synopsys's fork has it a limit above."""
    param = layer.param("relu_param", "leaky_relu_param")
    slope, limit = param.number("negative_slope"), param.number("maximum")
    if param.flag("relu6") and not slope:
        return _plain("relu6")(layer)
    if limit and not slope:
        told = at.Activation(param.number("minimum"), limit, layer.in_place)
        return layer.add("clip", told)
    if limit or param.flag("relu6") or param.number("minimum"):
        return layer.unknown(infer="same", sizes=(0,), why="a slope and limits")
    if slope:
        return layer.add("leaky_relu", at.Activation(alpha=slope, in_place=layer.in_place))
    return _plain("relu")(layer)


def _elu(layer: Layer) -> Tensors:
    alpha = layer.param("elu_param").number("alpha", 1.0)
    return layer.add("elu", at.Activation(alpha=alpha, in_place=layer.in_place))


def _prelu(layer: Layer) -> Tensors:
    return layer.add("prelu", at.PReLU(layer.param("prelu_param").flag("channel_shared")))


def _clip(layer: Layer) -> Tensors:
    param = layer.param("clip_param")
    told = at.Activation(param.number("min"), param.number("max"), layer.in_place)
    return layer.add("clip", told)


def _threshold(layer: Layer) -> Tensors:
    limit = layer.param("threshold_param").number("threshold")
    return layer.add("threshold", at.Activation(alpha=limit, in_place=layer.in_place))


def _swish(layer: Layer) -> Tensors:
    """Gate x by the sigmoid of beta · x."""
    beta = layer.param("swish_param").number("beta", 1.0)
    if beta == 1:
        return _plain("silu")(layer)
    gate = layer.add("sigmoid", at.Activation(), _scaled(layer, layer.x, beta), part="gate")
    return layer.add("mul", None, (layer.x, *gate))


def _concatenated_relu(layer: Layer) -> Tensors:
    """What is above zero beside what is below, as twice as many channels."""
    param = layer.param("crelu_param")
    negative = layer.add("neg", at.Activation(), part="negative")
    above = layer.add("relu", at.Activation(), part="above")
    below = layer.add("relu", at.Activation(), negative, part="below")
    return layer.add("concat", at.Concat(param.whole("concat_axis", 1)), (*above, *below))


def _identity(layer: Layer) -> Tensors:
    """Layers that only change gradients."""
    return layer.add("identity")


def _dropout(layer: Layer) -> Tensors:
    ratio = layer.param("dropout_param", "spatial_dropout_param").number("dropout_ratio", 0.5)
    return layer.add("dropout", at.Dropout(ratio, layer.in_place))


def _power(layer: Layer) -> Tensors:
    param = layer.param("power_param")
    told = at.Power(param.number("power", 1.0), param.number("scale", 1.0), param.number("shift"))
    return layer.add("power", told)


def _scaled(layer: Layer, x: str, by: float, part: str = "scale") -> Tensors:
    return (x,) if by == 1 else layer.add("mul", None, (x,), part=part)


def _exp(layer: Layer) -> Tensors:
    """Base ^ (shift + scale · x) = base ^ shift · e ^ (scale · ln base · x)."""
    param = layer.param("exp_param")
    base, shift = param.number("base", -1.0), param.number("shift")
    natural = 1.0 if base <= 0 or isclose(base, e) else log(base)
    x = _scaled(layer, layer.x, param.number("scale", 1.0) * natural)
    if shift == 0:
        return layer.add("exp", at.Activation(), x)
    return layer.add("mul", None, layer.add("exp", at.Activation(), x, part="exp"))


def _log(layer: Layer) -> Tensors:
    """Log of shift + scale · x, to any base."""
    param = layer.param("log_param")
    base = param.number("base", -1.0)
    x = _scaled(layer, layer.x, param.number("scale", 1.0))
    if param.number("shift") != 0:
        x = layer.add("add", None, x, part="shift")
    if base <= 0 or isclose(base, e):
        return layer.add("log", at.Activation(), x)
    return layer.add("mul", None, layer.add("log", at.Activation(), x, part="log"))


LAYERS = {
    "relu": _relu,
    "relu6": _plain("relu6"),
    "prelu": _prelu,
    "elu": _elu,
    "selu": _plain("selu"),
    "sigmoid": _plain("sigmoid"),
    "tanh": _plain("tanh"),
    "swish": _swish,
    "hardswish": _plain("hard_swish"),
    "hardsigmoid": _plain("hard_sigmoid"),
    "gelu": _plain("gelu"),
    "bnll": _plain("softplus"),
    "softplus": _plain("softplus"),
    "absval": _plain("abs"),
    "crelu": _concatenated_relu,
    "mish": _plain("mish"),
    "softsign": _plain("softsign"),
    "sqrt": _plain("sqrt"),
    "rsqrt": _plain("rsqrt"),
    "square": _plain("square"),
    "neg": _plain("neg"),
    "reciprocal": _plain("reciprocal"),
    "floor": _plain("floor"),
    "ceil": _plain("ceil"),
    "round": _plain("round"),
    "sign": _plain("sign"),
    "sin": _plain("sin"),
    "cos": _plain("cos"),
    "tan": _plain("tan"),
    "erf": _plain("erf"),
    "gradientscaler": _identity,
    "gradientreversal": _identity,
    "stopgradient": _identity,
    "blockgradient": _identity,
    "noop": _identity,
    "clip": _clip,
    "threshold": _threshold,
    "dropout": _dropout,
    "power": _power,
    "exp": _exp,
    "log": _log,
}
