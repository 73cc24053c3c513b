"""Copies of TorchScript modules, whose attributes are in a C++ object."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from layerscope.formats.torch.torch_types import Torch

if TYPE_CHECKING:
    from torch import ScriptModule as CppModule
    from torch import Tensor
    from torch.jit import ScriptModule

TRACED = "_actual_script_module"  # of a traced module: the module that it runs


def scripted_copy(
    torch: Torch, module: ScriptModule, copy_tensor: Callable[[Tensor], Tensor] | None
) -> Any:
    """A module that runs the same code, with attributes of its own."""
    if TRACED in module.__dict__:
        new = object.__new__(type(module))
        attrs = module.__dict__.copy()
        attrs[TRACED] = scripted_copy(torch, attrs[TRACED], copy_tensor)
        object.__setattr__(new, "__dict__", attrs)
        return new
    return torch.jit._recursive.wrap_cpp_module(_copied(torch, module._c, copy_tensor))


def _copied(
    torch: Torch, script: CppModule, copy_tensor: Callable[[Tensor], Tensor] | None
) -> CppModule:
    new = copy.copy(script)  # with the same tensors and children
    for name, child in torch._C.ModuleDict(script).items():
        new.setattr(name, _copied(torch, child, copy_tensor))
    if copy_tensor is not None:
        for name, buffer in torch._C.BufferDict(script).items():
            new.setattr(name, copy_tensor(buffer))
    return new
