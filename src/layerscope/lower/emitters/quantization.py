"""Quantization, dequantization and casts."""

from __future__ import annotations

from typing import Any

from layerscope.graph.attributes import Quantize
from layerscope.lower.builder import Emitter, NodeEmitter

QUANTIZED = ("int8", "uint8", "int16")


def quantized(op: str) -> Emitter:
    """Emitter for QuantizeLinear or DequantizeLinear; the scale has the floating-point dtype."""

    def emit(node: NodeEmitter) -> str:
        a: Quantize = node.attributes or Quantize()
        if a.dtype not in QUANTIZED:
            raise node.refuse(f"dtype {a.dtype}, expected {', '.join(QUANTIZED)}")
        back = op == "DequantizeLinear"
        x = node.operand(0, a.dtype) if back else node.x
        scale = node.param("scale", dtype=node.dtype if back else node.dtype_of(0))
        zero_point = node.param("zero_point", dtype=a.dtype)
        axis: dict[str, Any] = {"axis": 1} if a.per_channel and node.rank > 1 else {}
        return node.add(op, x, scale, zero_point, **axis)

    return emit


EMITTERS: dict[str, Emitter] = {
    "quantize": quantized("QuantizeLinear"),
    "dequantize": quantized("DequantizeLinear"),
    "cast": lambda node: node.cast(node.x, node.attributes.dtype),
}
