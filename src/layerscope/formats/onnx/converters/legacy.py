"""Experimental operators of ONNX 1.0 to 1.4 that later versions removed."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.converters.slice_concat import slice_
from layerscope.formats.onnx.dtypes import DTYPES
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.tensor_info import NeedsValue
from layerscope.graph import attributes as at


def affine(node: OnnxNode) -> None:
    """Affine: alpha · x + beta."""
    y = node.emit("mul", (node.input(),), part="alpha")[0]
    node.emit("add", (y,))


def scale(node: OnnxNode) -> None:
    """Scale: a product with one number."""
    node.emit("mul", (node.input(),))


def image_scaler(node: OnnxNode) -> None:
    """ImageScaler: one factor for all, and a bias for each channel."""
    y = node.emit("mul", (node.input(),), part="scale")[0]
    node.emit("add", (y,))


def scaled_tanh(node: OnnxNode) -> None:
    """ScaledTanh: alpha · tanh(beta · x)."""
    y = node.emit("mul", (node.input(),), part="beta")[0]
    y = node.emit("tanh", (y,), part="tanh")[0]
    node.emit("mul", (y,))


def parametric_softplus(node: OnnxNode) -> None:
    """ParametricSoftplus: alpha · softplus(beta · x)."""
    y = node.emit("mul", (node.input(),), part="beta")[0]
    y = node.emit("softplus", (y,), part="softplus")[0]
    node.emit("mul", (y,))


def crop(node: OnnxNode) -> None:
    """Crop: borders left, top, right, bottom of an image, or a size behind the first two."""
    x, border, size = node.shape(), node.ints_attr("border"), node.ints_attr("scale")
    if len(x) != 4 or len(border) != 4:
        raise ShapeError(f"borders {border} of {x}")
    left, top, right, bottom = border
    ends = (top + size[0], left + size[1]) if len(size) == 2 else (x[2] - bottom, x[3] - right)
    if not (0 <= top < ends[0] <= x[2] and 0 <= left < ends[1] <= x[3]):
        raise ShapeError(f"borders {border} of {x}")
    node.emit("slice", (node.input(),), at.Slice((2, 3), (top, left), ends))


def filled(node: OnnxNode) -> None:
    """ConstantFill, GivenTensorFill: the shape is an attribute, an input, or that of an input."""
    shape = node.ints_attr("shape")
    if node.has(0):
        shape = node.need_value(0).ints() if node.int_attr("input_as_shape") else node.shape()
        shape = (*shape, *node.ints_attr("extra_shape"))
    elif "shape" not in node.attrs:
        raise NeedsValue("shape is missing")
    node.emit_shaped("constant", (), (shape,), (DTYPES.get(node.int_attr("dtype", 1), "fp32"),))


OPERATORS: ConverterTable = {
    ("", "Affine"): Converter(affine, "X"),
    ("", "Scale"): Converter(scale, "input"),
    ("", "ImageScaler"): Converter(image_scaler, "input"),
    ("", "ScaledTanh"): Converter(scaled_tanh, "input"),
    ("", "ParametricSoftplus"): Converter(parametric_softplus, "X"),
    ("", "Crop"): Converter(crop, "input"),
    ("", "ConstantFill"): Converter(filled, "input"),
    ("", "GivenTensorFill"): Converter(filled, "shape"),
    ("", "DynamicSlice"): Converter(slice_, "data starts ends axes"),
}
