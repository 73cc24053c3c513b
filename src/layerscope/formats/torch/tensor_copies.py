"""Copies of a model's tensors for its shadows, where those of the model itself must not be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from layerscope.formats.torch.tracking import Tracker


class Copies:
    """Copies the buffers and bare tensors of a model: a run with real numbers may write to them."""

    def __init__(self, torch: Any, tracker: Tracker, unwatched: Callable[[], Any]) -> None:
        self.torch, self.tracker, self.unwatched = torch, tracker, unwatched
        self.parameters = False  # whether parameters are others too, with gradients of their own
        self._made: dict[int, tuple[Any, Any]] = {}  # by identity, with the original

    def __call__(self, tensor: Any) -> Any:
        """The copy of a tensor; one for all who hold it."""
        if id(tensor) not in self._made:
            with self.unwatched(), self.torch.inference_mode(False), self.torch.no_grad():
                copy = self._copied(tensor)
            self._made[id(tensor)] = (tensor, copy)
            if copy is not tensor:
                self._made[id(copy)] = (copy, copy)
                self._register(tensor, copy)
        return self._made[id(tensor)][1]

    def _copied(self, tensor: Any) -> Any:
        if isinstance(tensor, self.torch.nn.Parameter):
            if not self.parameters:
                return tensor
            return self.torch.nn.Parameter(tensor.detach(), requires_grad=tensor.requires_grad)
        return tensor.detach().clone()

    def _register(self, tensor: Any, copy: Any) -> None:
        """An array of the model has the name of the original."""
        held = self.tracker.held
        name = held.names.get(id(tensor))
        if name is not None:
            held.names[id(copy)] = name
            if id(tensor) in held.buffers:
                held.buffers.add(id(copy))


class MetaCopies(Copies):
    """Copies all tensors of a model to the meta device."""

    def _copied(self, tensor: Any) -> Any:
        torch = self.torch
        if tensor.is_meta or tensor.is_quantized or tensor.layout is not torch.strided:
            return tensor
        copy = torch.empty_strided(
            tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta"
        )
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(copy, requires_grad=tensor.requires_grad)
        return copy

    def _register(self, tensor: Any, copy: Any) -> None:
        super()._register(tensor, copy)
        value = self.tracker.value(copy)
        if tensor.device.type == "cpu" and value.sig.kind != "param":
            value.known = True
            value.recipe = (_itself, (tensor,), {}, None)


def _itself(tensor: Any) -> Any:
    return tensor
