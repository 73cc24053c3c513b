"""Narrow numbers: rounding to them and back, and operators that PyTorch has for them alone.

What is made of narrow numbers is rounded anew, as the operators of ONNX are read: products and
means as they stand, other functions of numbers between a dequantize and a quantize.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layerscope.formats.torch.aten import elements, norms, products, reductions, shaping, windows
from layerscope.formats.torch.dtypes import FLOATS, name_of
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.formats.torch.packed import SCALES, Pack
from layerscope.graph import attributes as at


def rounded(d: Lowering, x: TensorRef, dtype: str, relu: bool = False) -> TensorRef:
    """In a narrow type; scale and zero point are numbers of the call, not arrays."""
    if relu:
        x = d.add("relu", x, at=at.Activation())
    return d.add("quantize", x, at=at.Quantize(dtype), bare=True)


def widened(d: Lowering, x: TensorRef) -> TensorRef:
    """As floats, which it may be already."""
    if x.dtype in FLOATS:
        return x
    return d.add("dequantize", x, at=at.Quantize(x.dtype), bare=True)


def quantize_per_tensor(
    d: Lowering, self: TensorRef, scale: Any, zero_point: Any, dtype: Any
) -> TensorRef:
    return rounded(d, self, name_of(dtype))


def quantize_per_channel(
    d: Lowering, self: TensorRef, scales: TensorRef, zero_points: TensorRef, axis: int, dtype: Any
) -> TensorRef:
    return d.add("quantize", self, at=at.Quantize(name_of(dtype), per_channel=True), bare=True)


def quantize_dynamic(d: Lowering, self: TensorRef, dtype: Any, reduce_range: bool) -> TensorRef:
    """The range is looked up, a scale and a zero point made of it, then rounded to."""
    low = d.add("reduce_min", self, at=at.Reduce())
    high = d.add("reduce_max", self, at=at.Reduce())
    d.add("div", d.add("sub", high, low))
    kind = name_of(dtype)
    d.add("cast", d.add("div", low), at=at.Cast(kind))
    return rounded(d, self, kind)


def dequantize(d: Lowering, self: Any) -> Any:
    if not isinstance(self, TensorRef):
        raise Unsupported("several at once")
    return widened(d, self) if self.dtype not in FLOATS else d.add("identity", self)


def int_repr(d: Lowering, self: TensorRef) -> TensorRef:
    return d.add("identity", self)


# Products with packed arrays


def _arrays(pack: Any, names: Sequence[str]) -> list[TensorRef | None]:
    """The arrays of a packed object, each with the scales it is read by."""
    if not isinstance(pack, Pack):
        raise Unsupported("arrays that no module of the model keeps")
    found: list[TensorRef | None] = []
    for name in names:
        ref = pack.arrays.get(name)
        scales = [(own, pack.arrays[own]) for own in (f"{name}{end}" for end in SCALES)
                  if own in pack.arrays]  # fmt: skip
        found.append(
            ref and TensorRef(ref.shape, ref.dtype, ref.value_id, True, scales=tuple(scales))
        )
    return found


def _conv(d: Lowering, x: TensorRef, pack: Any, rank: int, transposed: bool) -> TensorRef:
    weight, bias = _arrays(pack, ("weight", "bias"))
    assert weight is not None
    if weight.rank == rank + 3:  # a row, kept as an image of one row
        shape = (*weight.shape[:2], *weight.shape[3:])
        weight = TensorRef(shape, weight.dtype, weight.value_id, True, scales=weight.scales)
    stride, padding, dilation, more, groups = pack.conv_args
    stride, padding, dilation, more = (each[-rank:] for each in (stride, padding, dilation, more))
    if transposed:
        return windows.conv_transpose(d, x, weight, bias, stride, padding, more, groups, dilation)
    return windows.conv(d, x, weight, bias, stride, padding, dilation, groups)


def conv(rank: int, *, relu: bool = False, transposed: bool = False) -> Any:
    """A convolution, what is fused behind it, and rounding."""

    def translate(d: Lowering, x: TensorRef, pack: Any, *_: Any) -> TensorRef:
        return rounded(d, _conv(d, x, pack, rank, transposed), x.dtype, relu)

    return translate


def conv_dynamic(rank: int, *, transposed: bool = False) -> Any:
    def translate(d: Lowering, x: TensorRef, pack: Any, reduce_range: bool = False) -> TensorRef:
        return widened(d, _conv(d, _ranged(d, x), pack, rank, transposed))

    return translate


def _ranged(d: Lowering, x: TensorRef) -> TensorRef:
    """Rounded to the range that it has."""
    d.add("reduce_min", x, at=at.Reduce())
    d.add("reduce_max", x, at=at.Reduce())
    return rounded(d, x, "uint8")


def _linear(d: Lowering, x: TensorRef, pack: Any) -> TensorRef:
    weight, bias = _arrays(pack, ("weight", "bias"))
    assert weight is not None
    return products.linear(d, x, weight, bias)


def linear(then: str = "") -> Any:
    """A product, what is fused behind it, and rounding."""

    def translate(
        d: Lowering, x: TensorRef, pack: Any, scale: float, zero_point: int, *told: Any
    ) -> TensorRef:
        made = _linear(d, x, pack)
        if then and then != "relu":
            made = elements.TABLE[then](d, widened(d, made), *told)
        return rounded(d, made, x.dtype, then == "relu")

    return translate


def linear_dynamic(*, relu: bool = False) -> Any:
    def translate(d: Lowering, x: TensorRef, pack: Any, reduce_range: bool = False) -> TensorRef:
        made = widened(d, _linear(d, _ranged(d, x), pack))
        return d.add("relu", made, at=at.Activation()) if relu else made

    return translate


def linear_half(*, relu: bool = False) -> Any:
    """By weights of 16 bits, widened as they are read: nothing is rounded."""

    def translate(d: Lowering, x: TensorRef, pack: Any) -> TensorRef:
        made = _linear(d, x, pack)
        return d.add("relu", made, at=at.Activation()) if relu else made

    return translate


def embedding(d: Lowering, pack: Any, indices: TensorRef, *_: Any) -> TensorRef:
    """Slices of a table, widened by the scale of each."""
    [table] = _arrays(pack, ("weight",))
    assert table is not None
    told = at.DeclaredOutputs(((*indices.shape, table.shape[1]),), (table.dtype,))
    return widened(d, d.add("select", indices, at=told, holds={"weight": table}))


def recurrent(op: str) -> Any:
    """As one of floats, by narrow arrays; rounding on the way is not told apart."""

    def translate(d: Lowering, input: TensorRef, hx: Any, params: Any, *told: Any, **_: Any) -> Any:
        if isinstance(params, TensorRef):  # packed sequences: data, sizes, state, params
            raise Unsupported("a packed sequence")
        names = ["weight_ih", "weight_hh"] + ["bias_ih", "bias_hh"] * bool(told[0])
        flat = [ref for pack in params for ref in _arrays(pack, names)]
        return products.TABLE[op](d, input, hx, flat, *told)

    return translate


# Functions of elements


def binary(op: str, *, relu: bool = False) -> Any:
    def translate(d: Lowering, a: Any, b: Any, *_: Any) -> TensorRef:
        """One side may be a number."""
        given = [ref for ref in (a, b) if isinstance(ref, TensorRef)]
        kind = next(ref.dtype for ref in given if ref.dtype not in FLOATS)
        return rounded(d, d.add(op, *[widened(d, ref) for ref in given]), kind, relu)

    return translate


def matmul(d: Lowering, a: TensorRef, b: TensorRef, *_: Any) -> TensorRef:
    return rounded(d, d.add("matmul", a, b), a.dtype)


def cat(*, relu: bool = False) -> Any:
    def translate(d: Lowering, parts: list[TensorRef], dim: int, *_: Any) -> TensorRef:
        return rounded(d, d.concat(parts, dim), parts[0].dtype, relu)

    return translate


def between(words: Any) -> Any:
    """What floats are needed for, between widening and rounding."""

    def translate(d: Lowering, x: TensorRef, *told: Any, **more: Any) -> TensorRef:
        return rounded(d, words(d, widened(d, x), *told, **more), x.dtype)

    return translate


def then_rounded(words: Any) -> Any:
    """What narrow numbers are enough for, though not to hold what comes out."""

    def translate(d: Lowering, x: TensorRef, *told: Any, **more: Any) -> TensorRef:
        return rounded(d, words(d, x, *told, **more), x.dtype)

    return translate


def _plain(op: str) -> Any:
    """Told the scale and zero point of what is made, and nothing that counts."""
    words = elements.TABLE[op]
    return between(lambda d, x, *_: words(d, x))


def leaky_relu(d: Lowering, x: TensorRef, negative_slope: float, *_: Any) -> TensorRef:
    made = elements.TABLE["leaky_relu"](d, widened(d, x), negative_slope)
    return rounded(d, made, x.dtype)


def elu(op: str) -> Any:
    def translate(
        d: Lowering, x: TensorRef, scale: float, zero_point: int, alpha: float = 1, *_: Any
    ) -> TensorRef:
        return rounded(d, elements.TABLE[op](d, widened(d, x), alpha), x.dtype)

    return translate


def softmax(d: Lowering, x: TensorRef, dim: int, *_: Any) -> TensorRef:
    return rounded(d, d.add("softmax", widened(d, x), at=at.Softmax(dim)), x.dtype)


def relu6(d: Lowering, x: TensorRef, inplace: bool = False) -> TensorRef:
    return d.add("relu6", x, at=at.Activation(in_place=inplace))


def dropout(
    d: Lowering, x: TensorRef, scale: float, zero_point: int, p: float = 0.5, *told: Any
) -> TensorRef:
    made: TensorRef = shaping.dropout(d, x, p, *told)
    return made


# Norms


def batch_norm(*, relu: bool = False) -> Any:
    def translate(
        d: Lowering,
        x: TensorRef,
        weight: Any,
        bias: Any,
        mean: TensorRef,
        var: TensorRef,
        eps: float,
        *_: Any,
    ) -> TensorRef:
        made = norms.batch_norm(d, widened(d, x), weight, bias, mean, var, False, 0.1, eps)
        return rounded(d, made, x.dtype, relu)

    return translate


def layer_norm(
    d: Lowering, x: TensorRef, shape: Any, weight: Any, bias: Any, eps: float, *_: Any
) -> TensorRef:
    return rounded(d, norms.layer_norm(d, widened(d, x), shape, weight, bias, eps), x.dtype)


def group_norm(
    d: Lowering, x: TensorRef, groups: int, weight: Any, bias: Any, eps: float, *_: Any
) -> TensorRef:
    return rounded(d, norms.group_norm(d, widened(d, x), groups, weight, bias, eps), x.dtype)


def instance_norm(
    d: Lowering, x: TensorRef, weight: Any, bias: Any, eps: float, *_: Any
) -> TensorRef:
    wide = widened(d, x)
    made = norms.instance_norm(d, wide, weight, bias, None, None, True, 0.1, eps)
    return rounded(d, made, x.dtype)


# Operators of aten that only narrow numbers have.
ALONE = frozenset((
    "quantize_per_tensor", "quantize_per_channel", "quantize_per_tensor_dynamic", "dequantize",
    "int_repr", "quantized_lstm", "quantized_gru",
))  # fmt: skip

QUANTIZED: dict[str, Any] = {
    "quantize_per_tensor": quantize_per_tensor,
    "quantize_per_channel": quantize_per_channel,
    "quantize_per_tensor_dynamic": quantize_dynamic,
    "dequantize": dequantize,
    "int_repr": int_repr,
    "quantized_lstm": recurrent("lstm"),
    "quantized_gru": recurrent("gru"),
    **{f"conv{n}d": conv(n) for n in (1, 2, 3)},
    **{f"conv{n}d_relu": conv(n, relu=True) for n in (1, 2, 3)},
    **{f"conv{n}d_dynamic": conv_dynamic(n) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": conv(n, transposed=True) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d_dynamic": conv_dynamic(n, transposed=True) for n in (1, 2, 3)},
    "linear": linear(),
    "linear_relu": linear("relu"),
    "linear_leaky_relu": linear("leaky_relu"),
    "linear_tanh": linear("tanh"),
    "linear_dynamic": linear_dynamic(),
    "linear_relu_dynamic": linear_dynamic(relu=True),
    "linear_dynamic_fp16": linear_half(),
    "linear_relu_dynamic_fp16": linear_half(relu=True),
    "embedding_byte": embedding,
    "embedding_4bit": embedding,
    **{op: binary(op) for op in ("add", "mul")},
    **{f"{op}_relu": binary(op, relu=True) for op in ("add", "mul")},
    **{f"{op}_scalar": binary(op) for op in ("add", "mul")},
    **{f"{op}_scalar_relu": binary(op, relu=True) for op in ("add", "mul")},
    "matmul": matmul,
    "cat": cat(),
    "cat_relu": cat(relu=True),
    "sigmoid": _plain("sigmoid"),
    "hardswish": _plain("hardswish"),
    "leaky_relu": leaky_relu,
    "elu": elu("elu"),
    "celu": elu("celu"),
    "softmax": softmax,
    "relu6": relu6,
    "clamp": elements.clamp,
    "threshold": elements.TABLE["threshold"],
    "dropout": dropout,
    **{f"max_pool{n}d": windows.TABLE[f"max_pool{n}d"] for n in (1, 2)},
    **{f"batch_norm{end}": batch_norm() for end in ("", "1d", "2d", "3d")},
    **{f"batch_norm{end}_relu": batch_norm(relu=True) for end in ("", "1d", "2d", "3d")},
    "layer_norm": layer_norm,
    "group_norm": group_norm,
    "instance_norm": instance_norm,
}

# Operators of aten on narrow numbers, where that is more than the operator alone.
MEANS = (
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
    "adaptive_avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "upsample_bilinear2d",
)  # fmt: skip
FUNCTIONS = (
    "sigmoid", "tanh", "hardsigmoid", "hardswish", "leaky_relu", "elu", "celu", "gelu", "silu",
)  # fmt: skip
NARROW: dict[str, Any] = {
    **{name: then_rounded(windows.TABLE[name]) for name in MEANS},
    "mean": then_rounded(reductions.TABLE["mean"]),
    **{name: between(elements.TABLE[name]) for name in FUNCTIONS},
}
