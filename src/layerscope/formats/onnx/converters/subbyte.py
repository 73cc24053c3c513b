"""Weights of 2 or 4 bits, several to a byte: matrix products and embedding tables."""

from __future__ import annotations

from msgspec.structs import replace

from layerscope.errors import ShapeError
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.node_view import InputId
from layerscope.formats.onnx.tensor_info import NeedsValue
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, Role, Shape, elements
from layerscope.ops.spec import axis_of


def packed_param(
    node: OnnxNode, array: tuple[InputId, str, Role], shape: Shape, bits: int
) -> Param:
    """A stored input of `bits` bits an element; `array` is the input, the parameter's name, role.

    Its shape is that of the unpacked elements.
    """
    which, name, role = array
    param = node.param(which, name, role)
    if elements(shape) * bits > param.bytes * 8:
        raise ShapeError(f"{name} of {shape} in {bits} bits each, stored as {param.shape}")
    kind = {2: "uint2", 4: "uint4"}.get(bits, param.dtype)
    return replace(param, shape=shape, dtype=kind)


def few_bits(node: OnnxNode) -> None:
    """MatMulNBits, MatMulBnb4, MatMulFpQ4: by sub-byte weights."""
    bits = node.int_attr("bits", 4)
    if node.op == "MatMulFpQ4":
        inner, features = node.need_value("B_shape").ints()
    else:
        inner, features = node.int_attr("K"), node.int_attr("N")
    if inner < 1 or features < 1 or node.shape("A")[-1:] != (inner,):
        raise ShapeError(f"matrix product of {node.shape('A')} by {inner} x {features}")
    if not node.stored("B"):
        raise NeedsValue(f"weight {node.input('B').name!r} is computed, expected a stored array")
    params = [packed_param(node, ("B", "weight", "weight"), (features, inner), bits)]
    names = [name for name in ("scales", "absmax") if node.stored(name)]
    params += [node.param(name, "scales", "statistic") for name in names]
    biased = False
    if node.op == "MatMulNBits":
        blocks = -(-inner // max(node.int_attr("block_size", 1), 1))
        params += _zero_points(node, features, blocks, bits)
        node.mark_constant("g_idx")
        biased = node.stored("bias")
        if biased:
            params.append(node.param("bias", "bias", "bias"))
    attrs = at.Linear(features, bias=biased)
    part = "product" if node.has("bias") and not biased else ""
    y = node.emit("linear", (node.input("A"),), attrs, params=params, part=part)[0]
    if part:
        node.emit("add", (y, node.input("bias")), roles="bias")


def _zero_points(node: OnnxNode, rows: int, blocks: int, bits: int) -> list[Param]:
    """Zero points of blocks: packed as the weights are, or floats."""
    if not node.stored("zero_points"):
        return []
    if node.dtype("zero_points") != "uint8" or bits == 8:
        return [node.param("zero_points", "zero_points", "statistic")]
    array: tuple[InputId, str, Role] = ("zero_points", "zero_points", "statistic")
    return [packed_param(node, array, (rows, blocks), bits)]


def gather_blocks(node: OnnxNode) -> None:
    """GatherBlockQuantized: slices of a sub-byte table, dequantized by blocks."""
    data = node.shape("data")
    bits = node.int_attr("bits", 4)
    axis = axis_of(node.int_attr("gather_axis"), len(data))
    if node.dtype("data") == "uint8" and bits < 8:
        data = (*data[:-1], data[-1] * (8 // bits))
    if not node.stored("data"):
        raise NeedsValue(f"table {node.input('data').name!r} is computed, expected a stored array")
    table = packed_param(node, ("data", "weight", "embedding"), data, bits)
    indices = node.input("indices")
    assert indices.shape is not None
    shape = (*data[:axis], *indices.shape, *data[axis + 1 :])
    attrs = at.DeclaredOutputs((shape,), (table.dtype,))
    y = node.emit("select", (indices,), attrs, params=(table,), part="gather")[0]
    names = ("scales", "zero_points")
    more = [node.param(name, name, "statistic") for name in names if node.stored(name)]
    node.emit("dequantize", (y,), at.Quantize(table.dtype), params=more)


OPERATORS: ConverterTable = {
    ("com.microsoft", "MatMulNBits"): Converter(few_bits, "A B scales zero_points g_idx bias"),
    ("com.microsoft", "MatMulBnb4"): Converter(few_bits, "A B absmax"),
    ("com.microsoft", "MatMulFpQ4"): Converter(few_bits, "A B B_shape"),
    ("com.microsoft", "GatherBlockQuantized"): Converter(
        gather_blocks, "data indices scales zero_points"
    ),
}
