"""Types of converters and of the ATen arguments that they take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layerscope.formats.torch.lowering import TensorRef

Scalar = int | float | complex  # `Scalar` of an ATen schema
Operand = TensorRef | int | float | complex  # `Tensor` in one overload, `Scalar` in another
IntOrInts = int | Sequence[int]  # `int[2]` and so on: one int stands for every axis
Dims = int | Sequence[int] | None  # axes to reduce; None or [] for all
DType = object  # a torch.dtype, or its name as exported programs store it: "torch.float32"

Converter = Callable[
    ..., TensorRef | list[TensorRef]
]  # of (d, *args, **kwargs) as PyTorch passes them
OneOutput = Callable[..., TensorRef]  # a converter of an operator with one output
