"""Types of converters and of the ATen arguments that they take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TypeVar

from layerscope.formats.torch.lowering import Lowering, TensorRef

Scalar = int | float | complex  # `Scalar` of an ATen schema
Operand = TensorRef | int | float | complex  # `Tensor` in one overload, `Scalar` in another
IntOrInts = int | Sequence[int]  # `int[2]` and so on: one int stands for every axis
Dims = int | Sequence[int] | None  # axes to reduce; None or [] for all
DType = object  # a torch.dtype, or its name as exported programs store it: "torch.float32"

Converter = Callable[
    ..., TensorRef | list[TensorRef]
]  # of (d, *args, **kwargs) as PyTorch passes them
OneOutput = Callable[..., TensorRef]  # a converter of an operator with one output

Args = TypeVar("Args")
Outputs = TypeVar("Outputs")


def takes(
    arguments: Callable[..., Args],
) -> Callable[[Callable[[Lowering, Args], Outputs]], Callable[..., Outputs]]:
    """Decorate a converter that takes its arguments as one Struct.

    The fields of the Struct have the names, order and defaults of the operator's schema. The
    converter is called as others are, with single arguments; wrong ones raise TypeError.
    """

    def decorate(convert: Callable[[Lowering, Args], Outputs]) -> Callable[..., Outputs]:
        @wraps(convert)
        def converter(d: Lowering, *args: object, **kwargs: object) -> Outputs:
            return convert(d, arguments(*args, **kwargs))

        return converter

    return decorate
