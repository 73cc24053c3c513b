"""Normalization layers: batch, instance, layer, group and RMS norm."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from layerscope.formats.torch.aten.signatures import OneOutput, takes
from layerscope.formats.torch.lowering import Lowering, Refused, TensorRef, Unsupported
from layerscope.graph import attributes as at
from layerscope.graph.types import Source


def _require_one_dtype(x: TensorRef, *params: TensorRef | None) -> None:
    """Raise for mixed dtypes, which PyTorch rejects; fp16 and bf16 may have fp32 parameters."""
    dtypes = {ref.dtype for ref in params if ref is not None}
    if dtypes - {x.dtype} and not (dtypes == {"fp32"} and x.dtype in ("fp16", "bf16")):
        raise Refused(f"a norm of mixed dtypes {' and '.join([x.dtype, *sorted(dtypes)])}")


def _require_last_axes(x: TensorRef, shape: Sequence[int]) -> None:
    if not shape or x.shape[-len(shape) :] != tuple(shape):
        raise Unsupported("normalized_shape differs from the last axes of the input")


class BatchNormArgs(Struct, frozen=True):
    """Arguments of aten::batch_norm and native_batch_norm."""

    input: TensorRef
    weight: TensorRef | None
    bias: TensorRef | None
    running_mean: TensorRef | None
    running_var: TensorRef | None
    training: bool
    momentum: float
    eps: float
    cudnn_enabled: bool = False


@takes(BatchNormArgs)
def batch_norm(d: Lowering, args: BatchNormArgs) -> TensorRef:
    """By running statistics; without them, by the statistics of each channel of the input."""
    _require_one_dtype(args.input, args.weight, args.bias, args.running_mean, args.running_var)
    if args.running_mean is None or args.running_var is None:
        return _by_batch_statistics(d, args.input, args.weight, args.bias, args.eps)
    affine = args.weight is not None or args.bias is not None
    scaled = args.weight is not None or not affine
    attrs = at.BatchNorm(affine, args.eps, args.momentum, scaled, d.training and not args.training)
    if affine and args.bias is None:
        raise Unsupported("a batch norm with a weight and no bias")
    params = {"weight": args.weight, "bias": args.bias, "running_mean": args.running_mean}
    return d.with_param_inputs(
        "batch_norm", args.input, attrs, {**params, "running_var": args.running_var}
    )


class BatchNormNoTrainingArgs(Struct, frozen=True):
    """Arguments of aten::_native_batch_norm_legit_no_training."""

    input: TensorRef
    weight: TensorRef | None
    bias: TensorRef | None
    running_mean: TensorRef
    running_var: TensorRef
    momentum: float
    eps: float


@takes(BatchNormNoTrainingArgs)
def batch_norm_no_training(d: Lowering, args: BatchNormNoTrainingArgs) -> TensorRef:
    return batch_norm(
        d,
        args.input,
        args.weight,
        args.bias,
        args.running_mean,
        args.running_var,
        False,
        args.momentum,
        args.eps,
    )


def _by_batch_statistics(
    d: Lowering, x: TensorRef, weight: TensorRef | None, bias: TensorRef | None, eps: float
) -> TensorRef:
    """A layer norm of C x N x ..., which has the elements of one channel in each row."""
    order = (1, 0, *range(2, x.rank))
    channels_first = d.add("permute", x, at=at.Permute(order))
    y = d.add("layer_norm", channels_first, at=at.LayerNorm(axis=1, affine=False, eps=eps))
    return _affine(d, d.add("permute", y, at=at.Permute(order)), weight, bias)


def _affine(
    d: Lowering, x: TensorRef, weight: TensorRef | None, bias: TensorRef | None
) -> TensorRef:
    """The scale and shift per channel as nodes of their own."""
    if weight is not None:
        attrs = at.Scale(bias=bias is not None)
        if weight.stored and (bias is None or bias.stored):
            params = {"weight": weight} | ({} if bias is None else {"bias": bias})
            return d.add("scale", x, at=attrs, holds=params)
        x = d.add("scale", x, weight, at=at.Scale())
    if bias is None:
        return x
    if bias.stored:
        return d.add("bias", x, at=at.Bias(), holds={"bias": bias})
    return d.add("bias", x, bias, at=at.Bias())


class InstanceNormArgs(Struct, frozen=True):
    """Arguments of aten::instance_norm."""

    input: TensorRef
    weight: TensorRef | None
    bias: TensorRef | None
    running_mean: TensorRef | None
    running_var: TensorRef | None
    use_input_stats: bool
    momentum: float
    eps: float
    cudnn_enabled: bool = False


@takes(InstanceNormArgs)
def instance_norm(d: Lowering, args: InstanceNormArgs) -> TensorRef:
    if not args.use_input_stats:
        return batch_norm(
            d,
            args.input,
            args.weight,
            args.bias,
            args.running_mean,
            args.running_var,
            False,
            args.momentum,
            args.eps,
        )
    if args.running_mean is not None:
        d.source = Source(op=f"{d.source.op}.running")
    attrs = at.InstanceNorm(args.weight is not None, args.eps)
    return d.with_param_inputs(
        "instance_norm", args.input, attrs, {"weight": args.weight, "bias": args.bias}
    )


class LayerNormArgs(Struct, frozen=True):
    """Arguments of aten::layer_norm and native_layer_norm."""

    input: TensorRef
    normalized_shape: Sequence[int]
    weight: TensorRef | None = None
    bias: TensorRef | None = None
    eps: float = 1e-5
    cudnn_enable: bool = True


@takes(LayerNormArgs)
def layer_norm(d: Lowering, args: LayerNormArgs) -> TensorRef:
    _require_last_axes(args.input, args.normalized_shape)
    _require_one_dtype(args.input, args.weight, args.bias)
    first = -len(args.normalized_shape)
    if args.weight is None:
        y = d.add("layer_norm", args.input, at=at.LayerNorm(first, False, True, args.eps))
        return y if args.bias is None else d.add("add", y, args.bias)
    attrs = at.LayerNorm(first, True, args.bias is not None, args.eps)
    return d.with_param_inputs(
        "layer_norm", args.input, attrs, {"weight": args.weight, "bias": args.bias}
    )


class GroupNormArgs(Struct, frozen=True):
    """Arguments of aten::group_norm."""

    input: TensorRef
    num_groups: int
    weight: TensorRef | None = None
    bias: TensorRef | None = None
    eps: float = 1e-5
    cudnn_enabled: bool = True


@takes(GroupNormArgs)
def group_norm(d: Lowering, args: GroupNormArgs) -> TensorRef:
    _require_one_dtype(args.input, args.weight, args.bias)
    num_groups = int(args.num_groups)  # a module may store a numpy integer
    if args.weight is not None and args.bias is None:
        plain = d.add("group_norm", args.input, at=at.GroupNorm(num_groups, False, args.eps))
        return _affine(d, plain, args.weight, None)
    attrs = at.GroupNorm(num_groups, args.weight is not None, args.eps)
    return d.with_param_inputs(
        "group_norm", args.input, attrs, {"weight": args.weight, "bias": args.bias}
    )


class NativeGroupNormArgs(Struct, frozen=True):
    """Arguments of aten::native_group_norm."""

    input: TensorRef
    weight: TensorRef | None
    bias: TensorRef | None
    n: int
    c: int
    hxw: int
    group: int
    eps: float


@takes(NativeGroupNormArgs)
def native_group_norm(d: Lowering, args: NativeGroupNormArgs) -> TensorRef:
    return group_norm(d, args.input, args.group, args.weight, args.bias, args.eps)


def rms_norm(
    d: Lowering,
    input: TensorRef,
    normalized_shape: Sequence[int],
    weight: TensorRef | None = None,
    eps: float | None = None,
) -> TensorRef:
    _require_last_axes(input, normalized_shape)
    attrs = at.RMSNorm(-len(normalized_shape), weight is not None, eps or 1e-6)
    return d.with_param_inputs("rms_norm", input, attrs, {"weight": weight})


TABLE: dict[str, OneOutput] = {
    "batch_norm": batch_norm,
    "native_batch_norm": batch_norm,
    "_native_batch_norm_legit_no_training": batch_norm_no_training,
    "instance_norm": instance_norm,
    "layer_norm": layer_norm,
    "native_layer_norm": layer_norm,
    "group_norm": group_norm,
    "native_group_norm": native_group_norm,
    "rms_norm": rms_norm,
}
