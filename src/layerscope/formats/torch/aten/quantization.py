"""Casts, quantize and dequantize."""

from __future__ import annotations

from layerscope.formats.torch.aten.signatures import DType, OneOutput
from layerscope.formats.torch.dtypes import FLOATS, name_of
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.graph import attributes as at

NOT_DTYPES = ("torch.strided", "torch.preserve", "torch.contig", "torch.channels")

# Casts


def to(
    d: Lowering, self: TensorRef, *options: object, dtype: DType = None, **_: object
) -> TensorRef:
    """A cast where a dtype or another tensor is given; devices and layouts change nothing."""
    for option in (*options, dtype):
        if isinstance(option, TensorRef):
            return d.cast(self, option.dtype)
        text = str(option)
        if text.startswith("torch.") and not text.startswith(NOT_DTYPES):
            return d.cast(self, name_of(option))
    return self


def cast_to(dtype: str) -> OneOutput:
    """A converter of a cast to one dtype, such as `Tensor.float`."""

    def convert(d: Lowering, self: TensorRef, *_: object) -> TensorRef:
        return d.cast(self, dtype)

    return convert


# Quantize, dequantize


def quantized(d: Lowering, x: TensorRef, dtype: str, relu: bool = False) -> TensorRef:
    """A quantize after a fused ReLU; scale and zero point are scalars, not parameters."""
    if relu:
        x = d.add("relu", x, at=at.Activation())
    return d.add("quantize", x, at=at.Quantize(dtype), bare=True)


def dequantized(d: Lowering, x: TensorRef) -> TensorRef:
    """The tensor as floats; no node if it is of floats already."""
    if x.dtype in FLOATS:
        return x
    return d.add("dequantize", x, at=at.Quantize(x.dtype), bare=True)


def quantize_per_tensor(
    d: Lowering,
    self: TensorRef,
    scale: float | TensorRef,
    zero_point: int | TensorRef,
    dtype: DType,
) -> TensorRef:
    return quantized(d, self, name_of(dtype))


def quantize_per_channel(
    d: Lowering, self: TensorRef, scales: TensorRef, zero_points: TensorRef, axis: int, dtype: DType
) -> TensorRef:
    return d.add("quantize", self, at=at.Quantize(name_of(dtype), per_channel=True), bare=True)


def quantize_per_tensor_dynamic(
    d: Lowering, self: TensorRef, dtype: DType, reduce_range: bool
) -> TensorRef:
    """Scale and zero point are computed from the minimum and maximum, then it is quantized."""
    low = d.add("reduce_min", self, at=at.Reduce())
    high = d.add("reduce_max", self, at=at.Reduce())
    d.add("div", d.add("sub", high, low))
    kind = name_of(dtype)
    d.add("cast", d.add("div", low), at=at.Cast(kind))
    return quantized(d, self, kind)


def dequantize(d: Lowering, self: TensorRef | list[TensorRef]) -> TensorRef:
    if not isinstance(self, TensorRef):
        raise Unsupported("several tensors dequantized at once")
    return dequantized(d, self) if self.dtype not in FLOATS else d.add("identity", self)


def int_repr(d: Lowering, self: TensorRef) -> TensorRef:
    return d.add("identity", self)


TABLE: dict[str, OneOutput] = {
    "to": to,
    "_to_copy": to,
    "type_as": to,
    "float": cast_to("fp32"),
    "half": cast_to("fp16"),
    "long": cast_to("int64"),
}
