"""Operators whose results are as large as numbers decide, where these numbers are known."""

from __future__ import annotations

from typing import Any

from layerscope.formats.torch.aten.declared import SIZED

# Of these only some tensors decide the size: flags and counts. Others stand for their shapes.
FLAGS = frozenset(("masked_select", "index"))


def depends_on_values(torch: Any, name: str, args: Any) -> bool:
    """Whether the size of what a call makes depends on numbers."""
    if name not in SIZED:
        return False
    if name == "index":
        flags = (torch.bool, torch.uint8)
        return any(index is not None and index.dtype in flags for index in args[1])
    if name == "repeat_interleave":
        counts = args[1] if len(args) > 1 else args[0]
        return isinstance(counts, torch.Tensor)
    return True


def run_sized(caller: Any, name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """The call on the numbers that decide its size; raises where they are not known."""
    torch = caller.torch

    def numbers(arg: Any, first: bool) -> Any:
        if isinstance(arg, torch.Tensor):
            if (first and name in FLAGS) or (
                name == "repeat_interleave" and first and len(args) > 1
            ):
                shape = tuple(arg.shape)
                return torch.zeros((), dtype=arg.dtype, device="cpu").expand(shape)
            return caller._numbers(arg)
        if isinstance(arg, (list, tuple)):
            return type(arg)([numbers(each, False) for each in arg])
        return arg

    with caller.unwatched(), torch.no_grad():
        given = [numbers(arg, n == 0) for n, arg in enumerate(args)]
        named = {key: numbers(arg, False) for key, arg in kwargs.items()}
        outs = func(*given, **named)
        if isinstance(outs, (list, tuple)):
            return type(outs)([torch.empty_like(out, device="meta") for out in outs])
        return torch.empty_like(outs, device="meta")
