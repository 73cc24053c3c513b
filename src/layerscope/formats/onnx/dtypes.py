"""ONNX's number types by their codes, and small payloads as Python numbers."""

from __future__ import annotations

from struct import unpack
from typing import TypeAlias

from layerscope.graph.types import DTYPE_BITS

Number: TypeAlias = int | float  # an element of a tensor; bool is an int
DTYPES = {
    1: "fp32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    8: "string", 9: "bool", 10: "fp16", 11: "fp64", 12: "uint32", 13: "uint64",
    14: "complex64", 15: "complex128", 16: "bf16", 17: "fp8", 18: "fp8", 19: "fp8", 20: "fp8",
    21: "uint4", 22: "int4", 23: "fp4", 24: "fp8", 25: "uint2", 26: "int2",
}  # fmt: skip
BITS = DTYPE_BITS
FLOATS = ("fp32", "fp16", "bf16", "fp64", "fp8", "fp4")
QUANTIZED = ("int8", "uint8", "int4", "uint4", "int2", "uint2")
INTEGERS = (
    "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "int4", "uint4",
    "int2", "uint2",
)  # fmt: skip
# Bits of an integer dtype, and whether it has a sign.
INTEGER_BITS = {
    dtype: (DTYPE_BITS[dtype], not dtype.startswith("u")) for dtype in INTEGERS
}  # fmt: skip
CODES = {
    "fp32": "f", "fp64": "d", "fp16": "e", "int64": "q", "int32": "i", "int16": "h", "int8": "b",
    "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q", "bool": "?",
}  # fmt: skip


OLD_NAMES = {  # that Cast had for dtypes before opset 6
    "FLOAT": "fp32", "DOUBLE": "fp64", "FLOAT16": "fp16", "BOOL": "bool", "INT8": "int8",
    "INT16": "int16", "INT32": "int32", "INT64": "int64", "UINT8": "uint8", "UINT16": "uint16",
    "UINT32": "uint32", "UINT64": "uint64",
}  # fmt: skip


def cast_dtype(to: object) -> str:
    """The dtype that a Cast names by its code, or by its name before opset 6; "" if unknown."""
    return DTYPES.get(to, "") if isinstance(to, int) else OLD_NAMES.get(str(to).upper(), "")


def decode(data: bytes, dtype: str, count: int) -> list[Number] | None:
    """The numbers in raw bytes; None for types that are not of this machine's."""
    code = CODES.get(dtype)
    if code is None:
        if dtype != "bf16":
            return None
        wide = b"".join(b"\0\0" + data[n : n + 2] for n in range(0, len(data), 2))
        return list(unpack(f"<{count}f", wide))
    return list(unpack(f"<{count}{code}", data))
