"""Dtype promotion as PyTorch does it, and dtypes that an operator rejects."""

from __future__ import annotations

from layerscope.formats.torch.dtypes import FLOATS, INEXACT
from layerscope.formats.torch.lowering import Lowering, Refused, TensorRef

ORDER = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "fp8", "fp16", "bf16", "fp32", "fp64",
    "complex64", "complex128",
)  # fmt: skip
RANKS = {name: n for n, name in enumerate(ORDER)}


def promote_types(a: str, b: str) -> str:
    """The dtype of a result of two dtypes, as `torch.promote_types`."""
    if {a, b} == {"fp16", "bf16"}:
        return "fp32"
    if {a, b} == {"fp64", "complex64"}:
        return "complex128"
    return a if RANKS.get(a, 99) >= RANKS.get(b, 99) else b


def category(dtype: str) -> int:
    """0 for bool, 1 for integers, 2 for floats, 3 for complex numbers."""
    return 3 if dtype.startswith("complex") else 2 if dtype in FLOATS else dtype != "bool"


def result_type(a: TensorRef, b: TensorRef) -> str:
    """The dtype of a result of two tensors.

    A tensor of rank 0 does not promote one of higher rank that has the same or a higher category.
    """
    if a.dtype == b.dtype:
        return a.dtype
    if b.rank == 0 < a.rank and category(b.dtype) <= category(a.dtype):
        return a.dtype
    if a.rank == 0 < b.rank and category(a.dtype) <= category(b.dtype):
        return b.dtype
    return promote_types(a.dtype, b.dtype)


def to_floating(d: Lowering, x: TensorRef) -> TensorRef:
    """Integers cast to the default float dtype; floats and complex numbers as they are."""
    return x if x.dtype.startswith(INEXACT) else d.cast(x, d.floating)


def require_integers(*inputs: TensorRef) -> None:
    """Raise for floats and complex numbers, on which PyTorch has no bitwise operators."""
    for ref in inputs:
        if ref.dtype.startswith(INEXACT):
            raise Refused(f"a bitwise operator on {ref.dtype}")
