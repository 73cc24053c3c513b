"""What is left of composite operators in a program that PyTorch has decomposed.

They make more than is used of them; the first result is the one that a model goes on with.
"""

from __future__ import annotations

from typing import Any

from layerscope.formats.torch.aten.norms import batch_norm, group_norm, layer_norm
from layerscope.formats.torch.aten.shaping import dropout, reshape
from layerscope.formats.torch.draft import Draft, NoWords, Ref
from layerscope.graph import attributes as at


def native_batch_norm(
    d: Draft,
    input: Ref,
    weight: Ref | None,
    bias: Ref | None,
    running_mean: Ref,
    running_var: Ref,
    momentum: float,
    eps: float,
) -> Ref:
    return batch_norm(d, input, weight, bias, running_mean, running_var, False, momentum, eps)


def native_group_norm(
    d: Draft,
    input: Ref,
    weight: Ref | None,
    bias: Ref | None,
    n: int,
    c: int,
    hw: int,
    group: int,
    eps: float,
) -> Ref:
    return group_norm(d, input, group, weight, bias, eps)


def slice_scatter(
    d: Draft,
    self: Ref,
    src: Ref,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Ref:
    """A tensor with a part of it written anew."""
    taken = range(*slice(start, end, step).indices(self.shape[dim]))
    if not taken:
        raise NoWords("an empty slice")
    told = at.Slice((dim % self.rank,), (taken[0],), (taken[-1] + 1,), (step,))
    return d.add("insert", self, d.cast(src, self.dtype), at=told)


def select_scatter(d: Draft, self: Ref, src: Ref, dim: int, index: int) -> Ref:
    axis = dim % self.rank
    place = index % self.shape[axis]
    one = reshape(d, src, (*self.shape[:axis], 1, *self.shape[axis + 1 :]))
    return slice_scatter(d, self, one, axis, place, place + 1)


CORE: dict[str, Any] = {
    "native_layer_norm": layer_norm,
    "_native_batch_norm_legit_no_training": native_batch_norm,
    "native_group_norm": native_group_norm,
    "native_dropout": dropout,
    "slice_scatter": slice_scatter,
    "select_scatter": select_scatter,
}
