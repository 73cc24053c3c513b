"""Operators that take functions: torch.cond, while_loop, scan, map."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from layerscope.formats.torch.capture_state import Capture
from layerscope.formats.torch.op_calls import OpCall
from layerscope.formats.torch.torch_types import Arg, Result

if TYPE_CHECKING:
    from torch import Tensor

Function = Callable[..., Result]


def on_higher_order(run: Capture, call: OpCall) -> Result:
    """Call the functions of a higher-order operator, as it does on real tensors."""
    with run.mode:
        own = FUNCTIONS.get(call.func.name())
        if own is not None:
            return own(*call.args, **call.kwargs)
        key = run.torch._C.DispatchKey.CompositeExplicitAutograd
        kernel = call.func.py_kernels.get(key)
        if kernel is None:
            raise NotImplementedError(f"{call.func.name()} has no kernel that can be followed")
        return kernel(*call.args, **call.kwargs)


def _cond(predicate: Arg, true: Function, false: Function, operands: Sequence[Arg] = ()) -> Result:
    return (true if predicate else false)(*operands)


def _scan(
    combine: Function, init: Sequence[Arg], xs: Sequence[Tensor], more: Sequence[Arg] = ()
) -> Result:
    torch = sys.modules["torch"]
    carry, rows = list(init), []
    for n in range(xs[0].shape[0]):
        out = combine(*carry, *[x.select(0, n) for x in xs], *more)
        carry, row = list(out[: len(init)]), out[len(init) :]
        rows.append(row)
    return (*carry, *[torch.stack(column) for column in zip(*rows, strict=True)])


def _call(function: Function, _: str, *operands: Arg) -> Result:
    return function(*operands)


# Their own kernels refuse to run inside a dispatch mode.
FUNCTIONS: dict[str, Function] = {"cond": _cond, "scan": _scan, "invoke_subgraph": _call}
