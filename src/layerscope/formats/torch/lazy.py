"""Lazy modules, whose parameters get their shapes from the first call: initialized on a copy."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from layerscope.errors import ModelError
from layerscope.formats.torch.calls import DataDependent
from layerscope.formats.torch.inputs import map_tensors
from layerscope.formats.torch.restore import same_random_states


class Uninitialized(DataDependent):
    """A model has parameters without shapes."""


def is_lazy(torch: Any, arrays: Mapping[str, Any]) -> bool:
    """Whether any of a model's arrays has no shape yet."""
    kinds = {*map(type, arrays.values())}
    lazy = torch.nn.parameter
    return lazy.UninitializedParameter in kinds or lazy.UninitializedBuffer in kinds


def initialized(torch: Any, model: Any, args: Any, kwargs: Any) -> Any:
    """A copy of a model, called once on zeros so that all parameters have their shapes.

    Parameters that have theirs are shared with the model, everything else is the copy's own.
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

    def zeros(tensor: Any) -> Any:
        return torch.zeros(tensor.shape, dtype=tensor.dtype, device=device)

    try:
        made = copy.deepcopy(model, memo)
        with torch.no_grad(), same_random_states(torch):
            made(*map_tensors(tuple(args), torch, zeros), **map_tensors(kwargs, torch, zeros))
    except Exception as error:
        raise ModelError(
            f"{type(model).__name__}: lazy modules cannot be initialized on a copy "
            f"({type(error).__name__}: {error}); call the model once before"
        ) from error
    return made
