"""Constants, ranges and random numbers."""

from __future__ import annotations

from layerscope.formats.onnx.arrays import range_length
from layerscope.formats.onnx.dtypes import DTYPES
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.tensor_info import NeedsValue


def range_(node: OnnxNode) -> None:
    """Range, where it is too long to be folded or depends on run-time data."""
    start, limit, delta = (node.need_value(name).item for name in ("start", "limit", "delta"))
    count = range_length(start, limit, delta)
    node.emit_shaped("range", (), ((count,),), (node.dtype("start"),))


def filled(node: OnnxNode) -> None:
    """ConstantOfShape, where its sizes depend on run-time data."""
    raise NeedsValue(node.unknown_value("input"))


def eye_like(node: OnnxNode) -> None:
    """EyeLike."""
    dtype = DTYPES.get(node.int_attr("dtype"), node.dtype())
    node.emit_shaped("constant", (), (node.shape(),), (dtype,))


def random_like(node: OnnxNode) -> None:
    """Random numbers in the shape of a tensor."""
    dtype = DTYPES.get(node.int_attr("dtype"), node.dtype())
    node.emit_shaped("random", (), (node.shape(),), (dtype,))


def random(node: OnnxNode) -> None:
    """Random numbers in the shape of an attribute."""
    node.emit_shaped(
        "random", (), (node.ints_attr("shape"),), (DTYPES.get(node.int_attr("dtype", 1), "fp32"),)
    )


def multinomial(node: OnnxNode) -> None:
    """Multinomial: classes sampled by their probabilities."""
    dtype = DTYPES.get(node.int_attr("dtype", 6), "int32")
    shape = (node.shape()[0], node.int_attr("sample_size", 1))
    node.emit_shaped("random", (), (shape,), (dtype,))


OPERATORS: ConverterTable = {
    ("", "Range"): Converter(range_, "start limit delta"),
    ("com.microsoft", "Range"): Converter(range_, "start limit delta"),
    ("", "ConstantOfShape"): Converter(filled, "input"),
    ("", "EyeLike"): Converter(eye_like, "input"),
    ("", "RandomNormalLike"): Converter(random_like, "input"),
    ("", "RandomUniformLike"): Converter(random_like, "input"),
    ("", "Bernoulli"): Converter(random_like, "input"),
    ("", "RandomNormal"): Converter(random),
    ("", "RandomUniform"): Converter(random),
    ("", "Multinomial"): Converter(multinomial, "input"),
}
