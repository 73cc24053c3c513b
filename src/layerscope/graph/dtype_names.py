"""Names of dtypes: ours (fp16), and those of PyTorch and NumPy that stand for them (float16)."""

from __future__ import annotations

from layerscope.errors import UnknownName
from layerscope.graph.types import DTYPE_BITS

TORCH_NAMES = {
    "float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16",
    "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "float8_e4m3fnuz": "fp8",
    "float8_e5m2fnuz": "fp8", "float8_e8m0fnu": "fp8",
    "int64": "int64", "int32": "int32", "int16": "int16", "int8": "int8", "uint8": "uint8",
    "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "bool": "bool",
    "qint8": "int8", "quint8": "uint8", "qint32": "int32",
    "quint4x2": "uint4", "quint2x4": "uint2",
    "complex32": "complex32", "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip
SHORT = {
    "half": "float16", "float": "float32", "double": "float64",
    "long": "int64", "int": "int32", "short": "int16",
    "chalf": "complex32", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip
USUAL = ("fp32", "fp16", "bf16", "fp8", "int8", "int4")  # listed for a wrong name
USUAL_TORCH = ("float32", "float16", "half", "bfloat16", "float8_e4m3fn")


def dtype_name(kind: object) -> str:
    """Our name of a dtype of PyTorch, NumPy or Python, or of a name of one; else its own name."""
    text = kind if isinstance(kind, str) else getattr(kind, "name", getattr(kind, "__name__", None))
    text = str(kind if text is None else text).removeprefix("torch.")
    return TORCH_NAMES.get(SHORT.get(text, text), text)


def known_dtype(kind: object) -> str:
    """Our name of a dtype; raises for a name that is neither ours nor PyTorch's."""
    name = dtype_name(kind)
    if name not in DTYPE_BITS:
        raise unknown_dtype(name)
    return name


def unknown_dtype(name: str) -> UnknownName:
    """The error for a wrong name, with the closest ones or the usual ones."""
    return UnknownName(
        "dtype",
        name,
        (*DTYPE_BITS, *TORCH_NAMES, *SHORT),
        f"; expected a name such as {', '.join(USUAL)}, or PyTorch's: {', '.join(USUAL_TORCH)}",
    )
