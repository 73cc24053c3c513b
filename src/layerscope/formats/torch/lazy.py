"""Lazy modules, whose parameters get their shapes from the first call: initialized on a copy."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from layerscope.errors import ModelError
from layerscope.formats.torch.capture_state import DataDependent
from layerscope.formats.torch.inputs import map_tensors
from layerscope.formats.torch.restore import restored_random_states
from layerscope.formats.torch.torch_types import Arg, Args, Torch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


class Uninitialized(DataDependent):
    """A model has parameters without a shape."""


def is_lazy(torch: Torch, arrays: Mapping[str, Tensor]) -> bool:
    """Whether any parameter or buffer has no shape yet."""
    kinds = {*map(type, arrays.values())}
    lazy = torch.nn.parameter
    return lazy.UninitializedParameter in kinds or lazy.UninitializedBuffer in kinds


def initialized(torch: Torch, model: Module, args: Args, kwargs: Mapping[str, Arg]) -> Module:
    """A copy of a model, called once on zeros so that all parameters have their shapes.

    Parameters that have a shape are shared with the model, everything else is copied.
    """
    memo: dict[int, Any] = {}
    devices = set()
    for array in (*model.parameters(), *model.buffers()):
        devices.add(array.device)
        if is_lazy(torch, {"": array}):
            memo[id(array)] = type(array)(device=array.device, dtype=array.dtype)
        elif isinstance(array, torch.nn.Parameter):
            memo[id(array)] = array
    device = devices.pop() if len(devices) == 1 else torch.device("cpu")

    def zeros(tensor: Tensor) -> Tensor:
        return torch.zeros(tensor.shape, dtype=tensor.dtype, device=device)

    try:
        ready = copy.deepcopy(model, memo)
        with torch.no_grad(), restored_random_states(torch):
            ready(*map_tensors(tuple(args), torch, zeros), **map_tensors(kwargs, torch, zeros))
    except Exception as error:
        raise ModelError(
            f"{type(model).__name__}: lazy modules cannot be initialized on a copy "
            f"({type(error).__name__}: {error}); call the model once before"
        ) from error
    return ready
