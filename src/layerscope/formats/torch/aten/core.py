"""What composite operators are made of, as in a program that PyTorch has decomposed.

The first result is the one that a model goes on with, the others are by-products.
"""

from __future__ import annotations

from typing import Any

from layerscope.formats.torch.aten.norms import batch_norm, group_norm, layer_norm
from layerscope.formats.torch.aten.shaping import dropout
from layerscope.formats.torch.lowering import Lowering, TensorRef


def native_batch_norm(
    d: Lowering,
    input: TensorRef,
    weight: TensorRef | None,
    bias: TensorRef | None,
    running_mean: TensorRef,
    running_var: TensorRef,
    momentum: float,
    eps: float,
) -> TensorRef:
    return batch_norm(d, input, weight, bias, running_mean, running_var, False, momentum, eps)


def native_group_norm(
    d: Lowering,
    input: TensorRef,
    weight: TensorRef | None,
    bias: TensorRef | None,
    n: int,
    c: int,
    hw: int,
    group: int,
    eps: float,
) -> TensorRef:
    return group_norm(d, input, group, weight, bias, eps)


TABLE: dict[str, Any] = {
    "native_layer_norm": layer_norm,
    "native_batch_norm": batch_norm,
    "_native_batch_norm_legit_no_training": native_batch_norm,
    "native_group_norm": native_group_norm,
    "native_dropout": dropout,
}
