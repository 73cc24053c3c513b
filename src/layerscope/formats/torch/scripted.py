"""Copies of TorchScript modules, whose attributes PyTorch keeps in an object of its own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

TRACED = "_actual_script_module"  # of a traced module: what it runs


def scripted_copy(torch: Any, module: Any, copy_tensor: Callable[[Any], Any] | None) -> Any:
    """A module that runs the same code; what its code writes to attributes stays in the copy."""
    if TRACED in module.__dict__:
        new = object.__new__(type(module))
        held = module.__dict__.copy()
        held[TRACED] = scripted_copy(torch, held[TRACED], copy_tensor)
        object.__setattr__(new, "__dict__", held)
        return new
    return torch.jit._recursive.wrap_cpp_module(_copied(torch, module._c, copy_tensor))


def _copied(torch: Any, script: Any, copy_tensor: Callable[[Any], Any] | None) -> Any:
    new = copy.copy(script)  # with the same tensors, and the same objects of its children
    for name, child in torch._C.ModuleDict(script).items():
        new.setattr(name, _copied(torch, child, copy_tensor))
    if copy_tensor is not None:
        for name, buffer in torch._C.BufferDict(script).items():
            new.setattr(name, copy_tensor(buffer))
    return new
