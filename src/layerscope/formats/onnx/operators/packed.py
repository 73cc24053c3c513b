"""Numbers of a few bits each, several to a byte: products by them, and slices of tables of them."""

from __future__ import annotations

from msgspec.structs import replace

from layerscope.errors import ShapeError
from layerscope.formats.onnx.known import NeedsValue
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, Role, Shape, elements
from layerscope.ops.spec import axis_of


def packed_param(
    s: Site, n: int, name: str, shape: Shape, bits: int, role: Role = "weight"
) -> Param:
    """An array of so many numbers of `bits` bits each, stored several to a byte."""
    param = s.param(n, name, role)
    if elements(shape) * bits > param.bytes * 8:
        raise ShapeError(f"{name} of {shape} in {bits} bits each, stored as {param.shape}")
    kind = {2: "uint2", 4: "uint4"}.get(bits, param.dtype)
    return replace(param, shape=shape, dtype=kind)


def few_bits(s: Site) -> None:
    """MatMulNBits, MatMulBnb4, MatMulFpQ4: by weights of a few bits, which lie in bytes."""
    bits = s.whole("bits", 4)
    if s.op == "MatMulFpQ4":
        inner, features = s.need(2).ints()
    else:
        inner, features = s.whole("K"), s.whole("N")
    if inner < 1 or features < 1 or s.shape(0)[-1:] != (inner,):
        raise ShapeError(f"matrix product of {s.shape(0)} by {inner} x {features}")
    if not s.stored(1):
        raise NeedsValue(f"weight {s.given(1).name!r} is computed, expected a stored array")
    params = [packed_param(s, 1, "weight", (features, inner), bits)]
    if s.op != "MatMulFpQ4" and s.stored(2):
        params.append(s.param(2, "scales", "statistic"))
    biased = False
    if s.op == "MatMulNBits":
        params += _zeros(s, 3, features, -(-inner // max(s.whole("block_size", 1), 1)), bits)
        s.reader.uses(s.given(4) if s.has(4) else None)
        biased = s.stored(5)
        if biased:
            params.append(s.param(5, "bias", "bias"))
    told = at.Linear(features, bias=biased)
    part = "product" if s.has(5) and not biased else ""
    made = s.emit("linear", (s.given(0),), told, params=params, part=part)[0]
    if part:
        s.emit("add", (made, s.given(5)), roles="bias")


def _zeros(s: Site, n: int, rows: int, blocks: int, bits: int) -> list[Param]:
    """Zero points of blocks, in bytes as the weights are, or in floats."""
    if not s.stored(n):
        return []
    if s.dtype(n) != "uint8" or bits == 8:
        return [s.param(n, "zero_points", "statistic")]
    return [packed_param(s, n, "zero_points", (rows, blocks), bits, "statistic")]


def gather_blocks(s: Site) -> None:
    """GatherBlockQuantized: slices of a table of a few bits, widened by blocks."""
    data = s.shape(0)
    bits = s.whole("bits", 4)
    axis = axis_of(s.whole("gather_axis"), len(data))
    if s.dtype(0) == "uint8" and bits < 8:
        data = (*data[:-1], data[-1] * (8 // bits))
    if not s.stored(0):
        raise NeedsValue(f"table {s.given(0).name!r} is computed, expected a stored array")
    table = packed_param(s, 0, "weight", data, bits, "embedding")
    indices = s.given(1)
    assert indices.shape is not None
    shape = (*data[:axis], *indices.shape, *data[axis + 1 :])
    told = at.DeclaredOutputs((shape,), (table.dtype,))
    made = s.emit("select", (indices,), told, params=(table,), part="gather")[0]
    more = [
        s.param(n, name, "statistic") for n, name in ((2, "scales"), (3, "zero_points"))
        if s.stored(n)
    ]  # fmt: skip
    s.emit("dequantize", (made,), at.Quantize(table.dtype), params=more)


OPERATORS: dict[tuple[str, str], Convert] = {
    ("com.microsoft", "MatMulNBits"): few_bits,
    ("com.microsoft", "MatMulBnb4"): few_bits,
    ("com.microsoft", "MatMulFpQ4"): few_bits,
    ("com.microsoft", "GatherBlockQuantized"): gather_blocks,
}
