"""Normalisations and softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layerscope.formats.torch.lowering import Lowering, Refused, TensorRef, Unsupported, axis
from layerscope.graph import attributes as at
from layerscope.graph.types import Source


def _need_alike(x: TensorRef, *arrays: TensorRef | None) -> None:
    """Raise where PyTorch refuses numbers of several types; narrow ones may meet arrays of fp32."""
    kinds = {ref.dtype for ref in arrays if ref is not None}
    if kinds - {x.dtype} and not (kinds == {"fp32"} and x.dtype in ("fp16", "bf16")):
        raise Refused(f"numbers of {' and '.join([x.dtype, *sorted(kinds)])} in one norm")


def _need_tail(x: TensorRef, shape: Sequence[int]) -> None:
    if not shape or x.shape[-len(shape) :] != tuple(shape):
        raise Unsupported("a norm of other axes than there are")


def batch_norm(
    d: Lowering,
    input: TensorRef,
    weight: TensorRef | None,
    bias: TensorRef | None,
    running_mean: TensorRef | None,
    running_var: TensorRef | None,
    training: bool,
    momentum: float,
    eps: float,
    *_: Any,
) -> TensorRef:
    """By stored statistics; without any, by those of the input, a channel at a time."""
    _need_alike(input, weight, bias, running_mean, running_var)
    if running_mean is None or running_var is None:
        return _own_statistics(d, input, weight, bias, eps)
    affine = weight is not None or bias is not None
    scaled = weight is not None or not affine
    told = at.BatchNorm(affine, eps, momentum, scaled, d.training and not training)
    if affine and bias is None:
        raise Unsupported("a batch norm that scales and does not shift")
    arrays = {"weight": weight, "bias": bias, "running_mean": running_mean}
    return d.with_param_inputs("batch_norm", input, told, {**arrays, "running_var": running_var})


def _own_statistics(
    d: Lowering, x: TensorRef, weight: TensorRef | None, bias: TensorRef | None, eps: float
) -> TensorRef:
    """All examples of a channel together: it in front, then one instance with as many channels."""
    order = (1, 0, *range(2, x.rank))
    front = d.add("permute", x, at=at.Permute(order))
    made = d.add("layer_norm", front, at=at.LayerNorm(axis=1, affine=False, eps=eps))
    return _affine(d, d.add("permute", made, at=at.Permute(order)), weight, bias)


def _affine(
    d: Lowering, x: TensorRef, weight: TensorRef | None, bias: TensorRef | None
) -> TensorRef:
    """What is learned per channel, on its own."""
    if weight is not None:
        told = at.Scale(bias=bias is not None)
        if weight.stored and (bias is None or bias.stored):
            holds = {"weight": weight} | ({} if bias is None else {"bias": bias})
            return d.add("scale", x, at=told, holds=holds)
        x = d.add("scale", x, weight, at=at.Scale())
    if bias is None:
        return x
    if bias.stored:
        return d.add("bias", x, at=at.Bias(), holds={"bias": bias})
    return d.add("bias", x, bias, at=at.Bias())


def instance_norm(
    d: Lowering,
    input: TensorRef,
    weight: TensorRef | None,
    bias: TensorRef | None,
    running_mean: TensorRef | None,
    running_var: TensorRef | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    *_: Any,
) -> TensorRef:
    if not use_input_stats:
        return batch_norm(d, input, weight, bias, running_mean, running_var, False, momentum, eps)
    if running_mean is not None:
        d.source = Source(op=f"{d.source.op}.running")
    arrays = {"weight": weight, "bias": bias}
    told = at.InstanceNorm(weight is not None, eps)
    return d.with_param_inputs("instance_norm", input, told, arrays)


def layer_norm(
    d: Lowering,
    input: TensorRef,
    normalized_shape: Sequence[int],
    weight: TensorRef | None = None,
    bias: TensorRef | None = None,
    eps: float = 1e-5,
    *_: Any,
) -> TensorRef:
    _need_tail(input, normalized_shape)
    _need_alike(input, weight, bias)
    told = at.LayerNorm(-len(normalized_shape), weight is not None, bias is not None, eps)
    if weight is None:
        made = d.add("layer_norm", input, at=at.LayerNorm(-len(normalized_shape), False, True, eps))
        return made if bias is None else d.add("add", made, bias)
    return d.with_param_inputs("layer_norm", input, told, {"weight": weight, "bias": bias})


def native_layer_norm(d: Lowering, input: TensorRef, *told: Any) -> TensorRef:
    return layer_norm(d, input, *told)


def group_norm(
    d: Lowering,
    input: TensorRef,
    num_groups: int,
    weight: TensorRef | None = None,
    bias: TensorRef | None = None,
    eps: float = 1e-5,
    *_: Any,
) -> TensorRef:
    _need_alike(input, weight, bias)
    num_groups = int(num_groups)  # a module may keep an integer of numpy
    told = at.GroupNorm(num_groups, weight is not None, eps)
    if weight is not None and bias is None:
        plain = d.add("group_norm", input, at=at.GroupNorm(num_groups, False, eps))
        return _affine(d, plain, weight, None)
    return d.with_param_inputs("group_norm", input, told, {"weight": weight, "bias": bias})


def rms_norm(
    d: Lowering,
    input: TensorRef,
    normalized_shape: Sequence[int],
    weight: TensorRef | None = None,
    eps: float | None = None,
) -> TensorRef:
    _need_tail(input, normalized_shape)
    told = at.RMSNorm(-len(normalized_shape), weight is not None, eps or 1e-6)
    return d.with_param_inputs("rms_norm", input, told, {"weight": weight})


def _softmax(op: str) -> Any:
    def translate(d: Lowering, self: TensorRef, dim: int, *told: Any, **more: Any) -> TensorRef:
        dtype = next((word for word in (*told, more.get("dtype")) if _is_dtype(word)), None)
        x = self
        axis(dim, max(self.rank, 1))
        if dtype is not None:
            from layerscope.formats.torch.dtypes import name_of

            x = d.cast(self, name_of(dtype))
        return d.add(op, x, at=at.Softmax(dim)) if self.rank else x

    return translate


def _is_dtype(word: Any) -> bool:
    return str(word).startswith("torch.")


TABLE: dict[str, Any] = {
    "batch_norm": batch_norm,
    "instance_norm": instance_norm,
    "layer_norm": layer_norm,
    "group_norm": group_norm,
    "rms_norm": rms_norm,
    "softmax": _softmax("softmax"),
    "_softmax": _softmax("softmax"),
    "log_softmax": _softmax("log_softmax"),
    "_log_softmax": _softmax("log_softmax"),
    "_safe_softmax": _softmax("softmax"),
}
