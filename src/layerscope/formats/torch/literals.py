"""Values that pass between tensors and Python without a call of the dispatcher.

PyTorch drops those of torch.tensor([...], device=x.device) on the meta device, and cannot read
those of a meta tensor by `tolist()` or `numpy()`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any

from layerscope.formats.torch.capture_state import Capture
from layerscope.formats.torch.computed_values import NoValues, values_in
from layerscope.formats.torch.torch_types import Arg, Args, Kwargs, Result, Torch

if TYPE_CHECKING:
    from torch import Tensor


def kept_literals(torch: Torch, run: Capture) -> AbstractContextManager[object]:
    """A context that keeps the values of tensors that the forward makes of Python numbers.

    Where values can be computed, lists and arrays are made of them. It looks at every function of
    PyTorch, so it is entered only if an earlier run of the forward read such a value.
    """
    mode: AbstractContextManager[object] = _mode_class(torch)(torch, run)
    return mode


@cache
def _mode_class(torch: Torch) -> Any:
    # position of the data argument
    readers = (torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__)
    makers = {torch.tensor: 0, torch.as_tensor: 0, torch.asarray: 0, torch.Tensor.new_tensor: 1}

    class Literals(torch.overrides.TorchFunctionMode):  # type: ignore[misc,name-defined]
        def __init__(self, torch: Torch, run: Capture) -> None:
            super().__init__()
            self.torch, self.run = torch, run

        def __torch_function__(
            self,
            func: Callable[..., Result],
            types: object,
            args: Args = (),
            kwargs: Kwargs | None = None,
        ) -> Result:
            if func in readers and args[0].is_meta:
                args = (self._with_values(args[0]), *args[1:])
            out = func(*args, **(kwargs or {}))
            position = makers.get(func)
            if position is not None and out.is_meta:
                data = args[position] if len(args) > position else (kwargs or {}).get("data")
                if not isinstance(data, self.torch.Tensor):
                    self._keep(out, data)
            return out

        def _with_values(self, tensor: Tensor) -> Tensor:
            assumed: dict[str, None] = {}
            try:
                with self.run.unwatched(), self.torch.no_grad():
                    values = values_in(self.run, tensor, assumed, self.run.writes)
                    return tensor if assumed else values.detach().clone()
            except NoValues:
                return tensor

        def _keep(self, out: Tensor, data: Arg) -> None:
            try:
                with self.run.unwatched():
                    real = self.torch.tensor(data, dtype=out.dtype, device="cpu")
            except (TypeError, ValueError, RuntimeError):  # a list with tensors in it
                return
            traced = self.run.tracker.lookup(out)
            traced.parent, traced.computable, traced.values = None, True, real

    return Literals
