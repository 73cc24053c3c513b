"""Operators on quantized tensors: those of the namespace `quantized`, and ATen's own.

Outputs are quantized again, as the operators of ONNX are read: products and means are computed on
quantized tensors, other functions between a dequantize and a quantize.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from layerscope.formats.torch.aten import activation, convolution, linear, normalization, pooling
from layerscope.formats.torch.aten.layout import dropout as float_dropout
from layerscope.formats.torch.aten.quantization import (
    dequantize,
    dequantized,
    int_repr,
    quantize_per_channel,
    quantize_per_tensor,
    quantize_per_tensor_dynamic,
    quantized,
)
from layerscope.formats.torch.aten.recurrent import State
from layerscope.formats.torch.aten.recurrent import recurrent as float_recurrent
from layerscope.formats.torch.aten.reduction import MEAN
from layerscope.formats.torch.aten.resize import upsample
from layerscope.formats.torch.aten.signatures import Converter, OneOutput, Operand, takes
from layerscope.formats.torch.dtypes import FLOATS
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.formats.torch.packed import SCALES, Pack
from layerscope.graph import attributes as at


def _by_range(d: Lowering, x: TensorRef) -> TensorRef:
    """Quantized by the minimum and maximum of the tensor."""
    d.add("reduce_min", x, at=at.Reduce())
    d.add("reduce_max", x, at=at.Reduce())
    return quantized(d, x, "uint8")


def after_dequantize(converter: OneOutput) -> OneOutput:
    """The converter between a dequantize and a quantize."""

    def convert(d: Lowering, x: TensorRef, *args: object, **kwargs: object) -> TensorRef:
        return quantized(d, converter(d, dequantized(d, x), *args, **kwargs), x.dtype)

    return convert


def then_quantized(converter: OneOutput) -> OneOutput:
    """The converter on the quantized tensor, its output quantized again."""

    def convert(d: Lowering, x: TensorRef, *args: object, **kwargs: object) -> TensorRef:
        return quantized(d, converter(d, x, *args, **kwargs), x.dtype)

    return convert


# Products with packed parameters


def _params(pack: Pack | None, names: Sequence[str]) -> list[TensorRef | None]:
    """The parameters of a packed object, each with its scale and zero point."""
    if not isinstance(pack, Pack):
        raise Unsupported("packed parameters that no module of the model has")
    found: list[TensorRef | None] = []
    for name in names:
        ref = pack.arrays.get(name)
        scales = [(own, pack.arrays[own]) for own in (f"{name}{end}" for end in SCALES)
                  if own in pack.arrays]  # fmt: skip
        found.append(
            ref and TensorRef(ref.shape, ref.dtype, ref.value_id, True, scales=tuple(scales))
        )
    return found


def _conv(d: Lowering, x: TensorRef, pack: Pack | None, rank: int, transposed: bool) -> TensorRef:
    weight, bias = _params(pack, ("weight", "bias"))
    assert weight is not None
    assert pack is not None
    if weight.rank == rank + 3:  # conv1d weights are packed as images of one row
        shape = (*weight.shape[:2], *weight.shape[3:])
        weight = TensorRef(shape, weight.dtype, weight.value_id, True, scales=weight.scales)
    stride, padding, dilation, output_padding = (sizes[-rank:] for sizes in pack.conv_args[:4])
    groups = pack.conv_args[4]
    if transposed:
        return convolution.conv_transpose(
            d, x, weight, bias, stride, padding, output_padding, groups, dilation
        )
    return convolution.conv(d, x, weight, bias, stride, padding, dilation, groups)


def conv(rank: int, *, relu: bool = False, transposed: bool = False) -> OneOutput:
    """A converter of a convolution with a fused ReLU, its output quantized."""

    def convert(d: Lowering, x: TensorRef, pack: Pack | None, *_: object) -> TensorRef:
        return quantized(d, _conv(d, x, pack, rank, transposed), x.dtype, relu)

    return convert


def conv_dynamic(rank: int, *, transposed: bool = False) -> OneOutput:
    """A converter of a convolution whose float input is quantized by its range."""

    def convert(
        d: Lowering, x: TensorRef, pack: Pack | None, reduce_range: bool = False
    ) -> TensorRef:
        return dequantized(d, _conv(d, _by_range(d, x), pack, rank, transposed))

    return convert


def _linear(d: Lowering, x: TensorRef, pack: Pack | None) -> TensorRef:
    weight, bias = _params(pack, ("weight", "bias"))
    assert weight is not None
    return linear.linear(d, x, weight, bias)


def quantized_linear(then: str = "") -> OneOutput:
    """A converter of a linear layer with a fused activation, its output quantized."""

    def convert(
        d: Lowering,
        x: TensorRef,
        pack: Pack | None,
        scale: float,
        zero_point: int,
        *scalars: object,
    ) -> TensorRef:
        y = _linear(d, x, pack)
        if then and then != "relu":
            y = activation.unary(then)(d, dequantized(d, y), *scalars)
        return quantized(d, y, x.dtype, then == "relu")

    return convert


def linear_dynamic(*, relu: bool = False) -> OneOutput:
    """A converter of a linear layer whose float input is quantized by its range."""

    def convert(
        d: Lowering, x: TensorRef, pack: Pack | None, reduce_range: bool = False
    ) -> TensorRef:
        y = dequantized(d, _linear(d, _by_range(d, x), pack))
        return d.add("relu", y, at=at.Activation()) if relu else y

    return convert


def linear_dynamic_fp16(*, relu: bool = False) -> OneOutput:
    """A converter of a linear layer with fp16 weights; nothing is quantized."""

    def convert(d: Lowering, x: TensorRef, pack: Pack | None) -> TensorRef:
        y = _linear(d, x, pack)
        return d.add("relu", y, at=at.Activation()) if relu else y

    return convert


def embedding(d: Lowering, pack: Pack | None, indices: TensorRef, *_: object) -> TensorRef:
    """Rows of a quantized table, dequantized by the scale of each."""
    [table] = _params(pack, ("weight",))
    assert table is not None
    attrs = at.DeclaredOutputs(((*indices.shape, table.shape[1]),), (table.dtype,))
    return dequantized(d, d.add("select", indices, at=attrs, holds={"weight": table}))


def recurrent(op: str) -> Converter:
    """A converter of a float recurrent layer with quantized parameters.

    The steps in between, which quantize activations, are not separate nodes.
    """

    def convert(
        d: Lowering,
        input: TensorRef,
        hx: State,
        params: Sequence[Pack],
        has_biases: bool,
        *options: object,
        **_: object,
    ) -> TensorRef | list[TensorRef]:
        if isinstance(params, TensorRef):  # of a packed sequence: data, batch_sizes, hx, params
            raise Unsupported("a packed sequence")
        names = ["weight_ih", "weight_hh"] + ["bias_ih", "bias_hh"] * bool(has_biases)
        flat = [ref for pack in params for ref in _params(pack, names)]
        return float_recurrent(op)(d, input, hx, flat, has_biases, *options)

    return convert


# Functions of elements


def binary(op: str, *, relu: bool = False) -> OneOutput:
    """A converter of `add` or `mul` with a fused ReLU; one operand may be a scalar."""

    def convert(d: Lowering, a: Operand, b: Operand, *_: object) -> TensorRef:
        tensors = [ref for ref in (a, b) if isinstance(ref, TensorRef)]
        dtype = next(ref.dtype for ref in tensors if ref.dtype not in FLOATS)
        return quantized(d, d.add(op, *[dequantized(d, ref) for ref in tensors]), dtype, relu)

    return convert


def matmul(d: Lowering, a: TensorRef, b: TensorRef, *_: object) -> TensorRef:
    return quantized(d, d.add("matmul", a, b), a.dtype)


def cat(*, relu: bool = False) -> OneOutput:
    """A converter of `cat` with a fused ReLU."""

    def convert(d: Lowering, tensors: list[TensorRef], dim: int, *_: object) -> TensorRef:
        return quantized(d, d.concat(tensors, dim), tensors[0].dtype, relu)

    return convert


def unary(op: str) -> OneOutput:
    """A converter that ignores the scale and zero point of the output."""
    float_unary = activation.unary(op)

    def convert(d: Lowering, x: TensorRef, *_: object, **__: object) -> TensorRef:
        return quantized(d, float_unary(d, dequantized(d, x)), x.dtype)

    return convert


def leaky_relu(d: Lowering, x: TensorRef, negative_slope: float, *_: object) -> TensorRef:
    y = activation.unary("leaky_relu")(d, dequantized(d, x), negative_slope)
    return quantized(d, y, x.dtype)


def elu(op: str) -> OneOutput:
    """A converter of `elu` or `celu`."""

    def convert(
        d: Lowering, x: TensorRef, scale: float, zero_point: int, alpha: float = 1, *_: object
    ) -> TensorRef:
        return quantized(d, activation.unary(op)(d, dequantized(d, x), alpha), x.dtype)

    return convert


def softmax(d: Lowering, x: TensorRef, dim: int, *_: object) -> TensorRef:
    return quantized(d, d.add("softmax", dequantized(d, x), at=at.Softmax(dim)), x.dtype)


def relu6(d: Lowering, x: TensorRef, inplace: bool = False) -> TensorRef:
    return d.add("relu6", x, at=at.Activation(in_place=inplace))


class QuantizedDropoutArgs(Struct, frozen=True):
    """Arguments of quantized::dropout."""

    x: TensorRef
    scale: float
    zero_point: int
    p: float = 0.5
    train: bool = True


@takes(QuantizedDropoutArgs)
def dropout(d: Lowering, args: QuantizedDropoutArgs) -> TensorRef:
    return float_dropout(d, args.x, args.p, args.train)


# Norms


class QuantizedBatchNormArgs(Struct, frozen=True):
    """Arguments of quantized::batch_norm and its forms by rank."""

    x: TensorRef
    weight: TensorRef | None
    bias: TensorRef | None
    mean: TensorRef
    var: TensorRef
    eps: float
    output_scale: float = 1.0
    output_zero_point: int = 0


def batch_norm(*, relu: bool = False) -> OneOutput:
    """A converter of a batch norm with a fused ReLU."""

    @takes(QuantizedBatchNormArgs)
    def convert(d: Lowering, args: QuantizedBatchNormArgs) -> TensorRef:
        wide = dequantized(d, args.x)
        y = normalization.batch_norm(
            d, wide, args.weight, args.bias, args.mean, args.var, False, 0.1, args.eps
        )
        return quantized(d, y, args.x.dtype, relu)

    return convert


class QuantizedNormArgs(Struct, frozen=True):
    """Arguments of quantized::layer_norm and group_norm."""

    x: TensorRef
    normalized: int | Sequence[int]  # num_groups, or normalized_shape
    weight: TensorRef | None
    bias: TensorRef | None
    eps: float
    output_scale: float = 1.0
    output_zero_point: int = 0


def norm(converter: OneOutput) -> OneOutput:
    """A converter of a layer norm or group norm, between a dequantize and a quantize."""

    @takes(QuantizedNormArgs)
    def convert(d: Lowering, args: QuantizedNormArgs) -> TensorRef:
        wide = dequantized(d, args.x)
        y = converter(d, wide, args.normalized, args.weight, args.bias, args.eps)
        return quantized(d, y, args.x.dtype)

    return convert


def instance_norm(
    d: Lowering,
    x: TensorRef,
    weight: TensorRef | None,
    bias: TensorRef | None,
    eps: float,
    *_: object,
) -> TensorRef:
    wide = dequantized(d, x)
    y = normalization.instance_norm(d, wide, weight, bias, None, None, True, 0.1, eps)
    return quantized(d, y, x.dtype)


# Those of QUANTIZED_ONLY, and the operators of the namespace `quantized`.
QUANTIZED: dict[str, Converter] = {
    "quantize_per_tensor": quantize_per_tensor,
    "quantize_per_channel": quantize_per_channel,
    "quantize_per_tensor_dynamic": quantize_per_tensor_dynamic,
    "dequantize": dequantize,
    "int_repr": int_repr,
    "quantized_lstm": recurrent("lstm"),
    "quantized_gru": recurrent("gru"),
    **{f"conv{n}d": conv(n) for n in (1, 2, 3)},
    **{f"conv{n}d_relu": conv(n, relu=True) for n in (1, 2, 3)},
    **{f"conv{n}d_dynamic": conv_dynamic(n) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": conv(n, transposed=True) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d_dynamic": conv_dynamic(n, transposed=True) for n in (1, 2, 3)},
    "linear": quantized_linear(),
    "linear_relu": quantized_linear("relu"),
    "linear_leaky_relu": quantized_linear("leaky_relu"),
    "linear_tanh": quantized_linear("tanh"),
    "linear_dynamic": linear_dynamic(),
    "linear_relu_dynamic": linear_dynamic(relu=True),
    "linear_dynamic_fp16": linear_dynamic_fp16(),
    "linear_relu_dynamic_fp16": linear_dynamic_fp16(relu=True),
    "embedding_byte": embedding,
    "embedding_4bit": embedding,
    **{op: binary(op) for op in ("add", "mul")},
    **{f"{op}_relu": binary(op, relu=True) for op in ("add", "mul")},
    **{f"{op}_scalar": binary(op) for op in ("add", "mul")},
    **{f"{op}_scalar_relu": binary(op, relu=True) for op in ("add", "mul")},
    "matmul": matmul,
    "cat": cat(),
    "cat_relu": cat(relu=True),
    "sigmoid": unary("sigmoid"),
    "hardswish": unary("hard_swish"),
    "leaky_relu": leaky_relu,
    "elu": elu("elu"),
    "celu": elu("celu"),
    "softmax": softmax,
    "relu6": relu6,
    "clamp": activation.clamp,
    "threshold": activation.unary("threshold"),
    "dropout": dropout,
    **{f"max_pool{n}d": pooling.max_pool(n) for n in (1, 2)},
    **{f"batch_norm{end}": batch_norm() for end in ("", "1d", "2d", "3d")},
    **{f"batch_norm{end}_relu": batch_norm(relu=True) for end in ("", "1d", "2d", "3d")},
    "layer_norm": norm(normalization.layer_norm),
    "group_norm": norm(normalization.group_norm),
    "instance_norm": instance_norm,
}

# ATen operators whose converters are others on quantized tensors.
ATEN_ON_QUANTIZED: dict[str, OneOutput] = {
    **{name: then_quantized(converter) for name, converter in pooling.AVERAGES.items()},
    "upsample_bilinear2d": then_quantized(upsample("bilinear")),
    "mean": then_quantized(MEAN),
    **{
        name: after_dequantize(activation.TABLE[name])
        for name in (
            "sigmoid", "tanh", "hardsigmoid", "hardswish", "leaky_relu", "elu", "celu", "gelu",
            "silu",
        )
    },
}  # fmt: skip
