"""Number types of PyTorch in our words."""

from __future__ import annotations

from typing import Any

from layerscope.errors import UsageError

NAMES = {
    "float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16",
    "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "float8_e4m3fnuz": "fp8",
    "float8_e5m2fnuz": "fp8", "float8_e8m0fnu": "fp8",
    "int64": "int64", "int32": "int32", "int16": "int16", "int8": "int8", "uint8": "uint8",
    "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "bool": "bool",
    "qint8": "int8", "quint8": "uint8", "qint32": "int32",
    "quint4x2": "uint4", "quint2x4": "uint2",
    "complex32": "complex32", "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip
FLOATS = ("fp64", "fp32", "fp16", "bf16", "fp8")
INEXACT = ("fp", "bf", "complex")  # how the names of types begin that are not of whole numbers


def name_of(dtype: Any) -> str:
    """Our name of a torch.dtype; one of its own if it has no other."""
    told = str(dtype).removeprefix("torch.")
    return NAMES.get(told, told)


SHORT = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "long": "int64",
    "int": "int32",
}


def dtype_name(kind: Any) -> str:
    """Our name of a dtype given in any way: by PyTorch, NumPy, Python, or as text."""
    text = kind if isinstance(kind, str) else getattr(kind, "name", getattr(kind, "__name__", None))
    text = str(kind if text is None else text).removeprefix("torch.")
    return NAMES.get(SHORT.get(text, text), text)


def torch_dtype(torch: Any, kind: Any) -> Any:
    """The torch.dtype of a dtype given in any way, or an error that names it."""
    if kind is None or isinstance(kind, torch.dtype):
        return kind
    if isinstance(kind, type) and kind in (int, float, bool):  # what PyTorch takes them for
        return {int: torch.int64, float: torch.float64, bool: torch.bool}[kind]
    ours = dtype_name(kind)
    for theirs, name in NAMES.items():
        if name == ours and hasattr(torch, theirs):
            return getattr(torch, theirs)
    raise UsageError(f"dtype {kind!r}, expected a torch.dtype or a name such as 'float16'")
