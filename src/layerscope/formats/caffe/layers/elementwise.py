"""Element-wise functions of several blobs, and powers."""

from __future__ import annotations

from layerscope.formats.caffe.layer import CaffeLayer, Converter, Tensors
from layerscope.formats.caffe.layers.activation import fused_relu
from layerscope.graph import attributes as at

# First Caffe's own, then those of Synopsys's fork (DIV, MIN) and of others (SUB), which have no
# number here.
OPERATIONS = ("PROD", "SUM", "MAX", "DIV", "MIN", "SUB")


def _eltwise(layer: CaffeLayer) -> Tensors:
    """A sum may have coefficients; with 1 and -1 it is a difference."""
    param = layer.param("eltwise_param")
    operation = param.choice("operation", OPERATIONS, "SUM")
    bottoms = layer.bottoms or (layer.x,)
    weights = param.numbers("coeff")
    if param.whole("axis"):  # Synopsys's fork: the second bottom is broadcast from this axis on
        return _broadcast(layer, operation, param.whole("axis"))
    if operation != "SUM":
        result = layer.add(operation.lower() if operation != "PROD" else "mul", None, bottoms)
    elif len(bottoms) == 2 and weights == [1.0, -1.0]:
        result = layer.add("sub", None, bottoms)
    else:
        scaled = sum(abs(weight) != 1 for weight in weights)
        result = layer.add("add", at.Sum(scaled) if scaled else None, bottoms)
    return fused_relu(layer, param, result)


def _broadcast(layer: CaffeLayer, operation: str, axis: int) -> Tensors:
    """A sum or product whose second bottom is broadcast along the axes from `axis` on."""
    if len(layer.bottoms) == 2 and operation == "PROD":
        result = layer.add("scale", at.Scale(axis), layer.bottoms)
    elif len(layer.bottoms) == 2 and operation == "SUM":
        result = layer.add("bias", at.Bias(axis), layer.bottoms)
    else:
        return layer.unknown(infer="same", sizes=(0,), why=f"{operation} along axis {axis}")
    layer.name_blobs(())
    return result


def _binary(op: str) -> Converter:
    """A function of two blobs, or of one and a constant."""
    return lambda layer: layer.add(op, None, layer.bottoms[:2] or (layer.x,))


def _power(layer: CaffeLayer) -> Tensors:
    param = layer.param("power_param")
    power, scale = param.number("power", 1.0), param.number("scale", 1.0)
    return layer.add("power", at.Power(power, scale, param.number("shift")))


def _axpy(layer: CaffeLayer) -> Tensors:
    return layer.add("axpy", None, layer.bottoms[:3])


LAYERS: dict[str, Converter] = {
    "eltwise": _eltwise,
    "maximum": _binary("max"),
    "minimum": _binary("min"),
    "realdiv": _binary("div"),
    "power": _power,
    "axpy": _axpy,
}
