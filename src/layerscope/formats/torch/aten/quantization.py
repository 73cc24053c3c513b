"""Casts, quantize and dequantize."""

from __future__ import annotations

from layerscope.formats.torch.aten.signatures import DType, OneOutput
from layerscope.formats.torch.draft import Draft, NoWords, Ref
from layerscope.formats.torch.dtypes import FLOATS, name_of
from layerscope.graph import attributes as at

NOT_DTYPES = ("torch.strided", "torch.preserve", "torch.contig", "torch.channels")

# Casts


def to(d: Draft, self: Ref, *options: object, dtype: DType = None, **_: object) -> Ref:
    """A cast where a dtype or another tensor is given; devices and layouts change nothing."""
    for option in (*options, dtype):
        if isinstance(option, Ref):
            return d.cast(self, option.dtype)
        text = str(option)
        if text.startswith("torch.") and not text.startswith(NOT_DTYPES):
            return d.cast(self, name_of(option))
    return self


def cast_to(dtype: str) -> OneOutput:
    """A converter of a cast to one dtype, such as `Tensor.float`."""

    def convert(d: Draft, self: Ref, *_: object) -> Ref:
        return d.cast(self, dtype)

    return convert


# Quantize, dequantize


def quantized(d: Draft, x: Ref, dtype: str, relu: bool = False) -> Ref:
    """A quantize after a fused ReLU; scale and zero point are scalars, not parameters."""
    if relu:
        x = d.add("relu", x, at=at.Activation())
    return d.add("quantize", x, at=at.Quantize(dtype), bare=True)


def dequantized(d: Draft, x: Ref) -> Ref:
    """The tensor as floats; no node if it is of floats already."""
    if x.dtype in FLOATS:
        return x
    return d.add("dequantize", x, at=at.Quantize(x.dtype), bare=True)


def quantize_per_tensor(
    d: Draft, self: Ref, scale: float | Ref, zero_point: int | Ref, dtype: DType
) -> Ref:
    return quantized(d, self, name_of(dtype))


def quantize_per_channel(
    d: Draft, self: Ref, scales: Ref, zero_points: Ref, axis: int, dtype: DType
) -> Ref:
    return d.add("quantize", self, at=at.Quantize(name_of(dtype), per_channel=True), bare=True)


def quantize_per_tensor_dynamic(d: Draft, self: Ref, dtype: DType, reduce_range: bool) -> Ref:
    """Scale and zero point are computed from the minimum and maximum, then it is quantized."""
    low = d.add("reduce_min", self, at=at.Reduce())
    high = d.add("reduce_max", self, at=at.Reduce())
    d.add("div", d.add("sub", high, low))
    kind = name_of(dtype)
    d.add("cast", d.add("div", low), at=at.Cast(kind))
    return quantized(d, self, kind)


def dequantize(d: Draft, self: Ref | list[Ref]) -> Ref:
    if not isinstance(self, Ref):
        raise NoWords("several tensors dequantized at once")
    return dequantized(d, self) if self.dtype not in FLOATS else d.add("identity", self)


def int_repr(d: Draft, self: Ref) -> Ref:
    return d.add("identity", self)


TABLE: dict[str, OneOutput] = {
    "to": to,
    "_to_copy": to,
    "type_as": to,
    "float": cast_to("fp32"),
    "half": cast_to("fp16"),
    "long": cast_to("int64"),
}
