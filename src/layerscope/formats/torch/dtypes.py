"""Dtypes of PyTorch and their names in layerscope: torch.float32 is fp32."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from layerscope.errors import UsageError

if TYPE_CHECKING:
    import torch

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
INEXACT = ("fp", "bf", "complex")  # prefixes of dtypes that are no integers


def name_of(dtype: torch.dtype | str) -> str:
    """Name of a torch.dtype in layerscope; its own name if it has no other."""
    name = str(dtype).removeprefix("torch.")
    return NAMES.get(name, name)


SHORT = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "long": "int64",
    "int": "int32",
}


def dtype_name(kind: object) -> str:
    """Name in layerscope of a dtype of PyTorch, NumPy or Python, or of a name of one."""
    text = kind if isinstance(kind, str) else getattr(kind, "name", getattr(kind, "__name__", None))
    text = str(kind if text is None else text).removeprefix("torch.")
    return NAMES.get(SHORT.get(text, text), text)


def torch_dtype(torch: ModuleType, kind: object) -> torch.dtype | None:
    """The torch.dtype of a dtype of PyTorch, NumPy or Python, or of its name; None of None."""
    if kind is None or isinstance(kind, torch.dtype):
        return kind
    if isinstance(kind, type) and kind in (int, float, bool):  # as PyTorch maps them
        return {int: torch.int64, float: torch.float64, bool: torch.bool}[kind]
    wanted = dtype_name(kind)
    for torch_name, name in NAMES.items():
        if name == wanted and hasattr(torch, torch_name):
            return getattr(torch, torch_name)
    raise UsageError(f"dtype {kind!r}, expected a torch.dtype or a name such as 'float16'")
