"""Dtypes of PyTorch and their names in layerscope: torch.float32 is fp32."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from layerscope.errors import UsageError
from layerscope.graph.dtype_names import TORCH_NAMES, dtype_name

if TYPE_CHECKING:
    import torch

FLOATS = ("fp64", "fp32", "fp16", "bf16", "fp8")
INEXACT = ("fp", "bf", "complex")  # prefixes of dtypes that are no integers


def name_of(dtype: torch.dtype | str) -> str:
    """Name of a torch.dtype in layerscope; its own name if it has no other."""
    name = str(dtype).removeprefix("torch.")
    return TORCH_NAMES.get(name, name)


def torch_dtype(torch: ModuleType, kind: object) -> torch.dtype | None:
    """The torch.dtype of a dtype of PyTorch, NumPy or Python, or of its name; None of None."""
    if kind is None or isinstance(kind, torch.dtype):
        return kind
    if isinstance(kind, type) and kind in (int, float, bool):  # as PyTorch maps them
        return {int: torch.int64, float: torch.float64, bool: torch.bool}[kind]
    wanted = dtype_name(kind)
    for torch_name, name in TORCH_NAMES.items():
        if name == wanted and hasattr(torch, torch_name):
            return getattr(torch, torch_name)
    raise UsageError(f"dtype {kind!r}, expected a torch.dtype or a name such as 'float16'")
