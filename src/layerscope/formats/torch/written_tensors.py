"""Tensors of the user's that a forward writes to: values and versions are restored after a run.

The version of a tensor counts writes into it. A backward pass that is still to come refuses to run
if the version of a tensor that it saved has changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from layerscope.formats.torch.tensors import Foreign
from layerscope.formats.torch.torch_types import Torch

if TYPE_CHECKING:
    from torch import Tensor


class Written(Struct):
    """A tensor that was written to, and what it was before."""

    tensor: Tensor
    values: Tensor | None  # None if none were overwritten: a handler answered all writes
    version: int
    keeper: Any  # restores the version
    counted: int = 0  # writes that PyTorch may have counted


class WrittenTensors:
    """Tensors that one run writes to and did not make."""

    def __init__(self, torch: Torch) -> None:
        self.torch = torch
        self._noted: dict[int, Written] = {}

    def note(self, tensor: Tensor, *, overwrites: bool) -> None:
        """Note a write before it happens. `overwrites` says that it changes the values."""
        noted = self._noted.get(id(tensor))
        if noted is None:
            if tensor.is_inference():  # it has no version
                noted = Written(tensor, None, 0, None)
            else:
                keeper = self.torch.autograd._unsafe_preserve_version_counter(tensor)
                noted = Written(tensor, None, tensor._version, keeper)
            self._noted[id(tensor)] = noted
        if overwrites and noted.values is None and not tensor.is_meta:
            with self.torch.no_grad():
                noted.values = tensor.detach().clone()
        noted.counted += 2 if overwrites else 1  # a call in a handler is a second one

    def restore(self, foreign: Iterable[Foreign]) -> None:
        """Restore what was overwritten, and versions that no other thread has changed.

        `foreign` are tensors with their storages: a forward may assign to their `data`.
        """
        for tensor, storage, offset, meta in foreign:
            if tensor.untyped_storage()._cdata != storage._cdata:
                with self.torch.inference_mode(False), self.torch.no_grad():
                    old = self.torch.empty(0, dtype=meta.dtype, device=storage.device)
                    tensor.data = old.set_(storage, offset, meta.shape, meta.stride)
        for noted in self._noted.values():
            if noted.values is not None:
                with self.torch.no_grad():
                    noted.tensor.detach().copy_(noted.values)
                noted.counted += 1
            keeper = noted.keeper
            if keeper is not None and noted.tensor._version - noted.version <= noted.counted:
                keeper.__exit__(None, None, None)
        self._noted.clear()
