"""Assignments to `tensor.data`, such as `self.weight.data = w / w.norm()`.

PyTorch calls no operator for them, and refuses to put a tensor on the meta device into one that is
elsewhere. A forward that does so is run again on copies of all tensors of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any

from layerscope.formats.torch.capture_state import Capture
from layerscope.formats.torch.inplace_writes import write
from layerscope.formats.torch.torch_types import Args, Kwargs, Result, Torch

if TYPE_CHECKING:
    from torch import Tensor

OPTION = "data_writes"  # of a run: see `Rerun`


def assigns_data(error: Exception) -> bool:
    """Whether a forward failed because it assigns to `tensor.data`."""
    return "variable.set_data" in str(error)


def followed_data_writes(torch: Torch, run: Capture) -> AbstractContextManager[object]:
    """A context in which a tensor has new contents after an assignment to its `data`.

    It looks at every function of PyTorch, so it is entered only if an earlier run needed it.
    """
    mode: AbstractContextManager[object] = _mode_class(torch)(torch, run)
    return mode


@cache
def _mode_class(torch: Torch) -> Any:
    assign = torch.Tensor.data.__set__

    class DataWrites(torch.overrides.TorchFunctionMode):  # type: ignore[misc,name-defined]
        def __init__(self, torch: Torch, run: Capture) -> None:
            super().__init__()
            self.run = run

        def __torch_function__(
            self,
            func: Callable[..., Result],
            types: object,
            args: Args = (),
            kwargs: Kwargs | None = None,
        ) -> Result:
            if func == assign:
                return _assign(self.run, func, *args)
            return func(*args, **(kwargs or {}))

    return DataWrites


def _assign(run: Capture, func: Callable[..., Result], target: Tensor, value: Tensor) -> Result:
    tracker = run.tracker
    traced = tracker.lookup(target)
    name = tracker.read(tracker.lookup(value))
    result = func(target, value)
    traced.parent = None  # a view is one of its own storage now
    traced.meta = tracker.meta(target, traced.meta.kind)
    traced.meta_copy = traced.values = None
    write(tracker, traced, name)
    return result
