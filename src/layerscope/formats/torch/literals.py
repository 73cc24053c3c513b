"""Values of torch.tensor([...], device=x.device), which PyTorch drops on the meta device."""

from __future__ import annotations

from functools import cache
from typing import Any

from layerscope.formats.torch.mode import Recorder


def kept_literals(torch: Any, recorder: Recorder) -> Any:
    """A context in which values that the forward writes out are known.

    Every function of PyTorch is looked at for that, so that it is entered only where a forward
    turned out to read such a value.
    """
    return _mode_type(torch)(torch, recorder)


@cache
def _mode_type(torch: Any) -> Any:
    makers = {torch.tensor: 0, torch.as_tensor: 0, torch.asarray: 0, torch.Tensor.new_tensor: 1}

    class Literals(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __init__(self, torch: Any, recorder: Recorder) -> None:
            super().__init__()
            self.torch, self.recorder = torch, recorder

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            out = func(*args, **(kwargs or {}))
            place = makers.get(func)
            if place is not None and out.is_meta:
                data = args[place] if len(args) > place else (kwargs or {}).get("data")
                if not isinstance(data, self.torch.Tensor):
                    self._keep(out, data)
            return out

        def _keep(self, out: Any, data: Any) -> None:
            try:
                with self.recorder.unwatched():
                    real = self.torch.tensor(data, dtype=out.dtype, device="cpu")
            except (TypeError, ValueError, RuntimeError):  # a list with tensors in it
                return
            value = self.recorder.tracker.value(out)
            value.parent, value.known, value.twin = None, True, real

    return Literals
