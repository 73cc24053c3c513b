"""Copies of a model's tensors for its shadows, where the model's own must not be used."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from layerscope.formats.torch.tensors import Recompute
from layerscope.formats.torch.torch_types import Torch
from layerscope.formats.torch.tracking import Tracker

if TYPE_CHECKING:
    from torch import Tensor


class TensorCopies:
    """Copies buffers and tensor attributes of a model: a run on real tensors may write to them."""

    def __init__(
        self,
        torch: Torch,
        tracker: Tracker,
        unwatched: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self.torch, self.tracker, self.unwatched = torch, tracker, unwatched
        self.parameters = False  # copy parameters too, so that they have gradients of their own
        self.values = False  # copy the values of parameters, because the run writes to them
        self._copies: dict[int, tuple[Tensor, Tensor]] = {}  # by identity, with the original

    def __call__(self, tensor: Tensor) -> Tensor:
        """The copy of a tensor, the same for every module that has the tensor."""
        if id(tensor) not in self._copies:
            with self.unwatched(), self.torch.inference_mode(False), self.torch.no_grad():
                copy = self._copy(tensor)
            self._copies[id(tensor)] = (tensor, copy)
            if copy is not tensor:
                self._copies[id(copy)] = (copy, copy)
                self._register(tensor, copy)
        return self._copies[id(tensor)][1]

    def _copy(self, tensor: Tensor) -> Tensor:
        if isinstance(tensor, self.torch.nn.Parameter):
            if not (self.parameters or self.values):
                return tensor
            data = tensor.detach().clone() if self.values else tensor.detach()
            return self.torch.nn.Parameter(data, requires_grad=tensor.requires_grad)
        return tensor.detach().clone()

    def _register(self, tensor: Tensor, copy: Tensor) -> None:
        """Give the copy of a parameter or buffer the name of the original."""
        params = self.tracker.param_table
        name = params.names.get(id(tensor))
        if name is not None:
            params.add_alias(copy, name, buffer=id(tensor) in params.buffers)


class MetaCopies(TensorCopies):
    """Copies all tensors of a model to the meta device."""

    of_meta = False  # copy those that are there already, too: the run assigns to their `data`

    def _copy(self, tensor: Tensor) -> Tensor:
        torch = self.torch
        if (
            (tensor.is_meta and not self.of_meta)
            or tensor.is_quantized
            or tensor.layout is not torch.strided
        ):
            return tensor
        copy = torch.empty_strided(
            tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta"
        )
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(copy, requires_grad=tensor.requires_grad)
        return copy

    def _register(self, tensor: Tensor, copy: Tensor) -> None:
        super()._register(tensor, copy)
        traced = self.tracker.lookup(copy)
        if tensor.device.type == "cpu" and traced.meta.kind != "param":
            traced.computable = True
            traced.recompute = Recompute(_itself, (tensor,), {})


def _itself(tensor: Tensor) -> Tensor:
    return tensor
