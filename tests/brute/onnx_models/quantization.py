"""ONNX models of quantization and casts."""

from __future__ import annotations

from layerscope.graph.attributes import Quantize
from tests.brute.engine import Model, Writer


def quantized(op: str) -> Writer:
    def write(m: Model) -> str:
        a: Quantize = m.attributes or Quantize()
        x = m.cast(m.x, a.dtype) if op == "DequantizeLinear" else m.x
        nought = m.cast("zero_point", a.dtype)
        axis = {"axis": 1} if a.per_channel and len(m.shape) > 1 else {}
        return m.node(op, x, "scale", nought, **axis)

    return write


MODELS: dict[str, Writer] = {
    "quantize": quantized("QuantizeLinear"),
    "dequantize": quantized("DequantizeLinear"),
    "cast": lambda m: m.cast(m.x, m.attributes.dtype),
}
