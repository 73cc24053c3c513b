"""Changes of number type."""

from __future__ import annotations

from typing import Any

from layerscope.graph.attributes import Quantize
from layerscope.lower.builder import Site, Writer

NARROW = ("int8", "uint8", "int16")


def quantized(op: str) -> Writer:
    """To a narrow type or back, by a scale in the type of the wide side."""

    def write(s: Site) -> str:
        a: Quantize = s.attributes or Quantize()
        if a.dtype not in NARROW:
            raise s.refuse(f"number type {a.dtype}, expected {', '.join(NARROW)}")
        back = op == "DequantizeLinear"
        x = s.operand(0, a.dtype) if back else s.x
        scale = s.param("scale", dtype=s.dtype if back else s.dtype_of(0))
        nought = s.param("zero_point", dtype=a.dtype)
        axis: dict[str, Any] = {"axis": 1} if a.per_channel and s.rank > 1 else {}
        return s.add(op, x, scale, nought, **axis)

    return write


WRITERS: dict[str, Writer] = {
    "quantize": quantized("QuantizeLinear"),
    "dequantize": quantized("DequantizeLinear"),
    "cast": lambda s: s.cast(s.x, s.attributes.dtype),
}
