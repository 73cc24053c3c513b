"""Operators that take functions: torch.cond, while_loop, scan, map."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def follow(func: Any, args: Any, kwargs: Any) -> Any:
    """The functions that a higher-order operator calls, called as it does on real tensors."""
    own: Callable[..., Any] | None = FOLLOWED.get(func.name())
    if own is not None:
        return own(*args, **kwargs)
    torch = sys.modules["torch"]
    kernel = func.py_kernels.get(torch._C.DispatchKey.CompositeExplicitAutograd)
    if kernel is None:
        raise NotImplementedError(f"{func.name()} has no kernel that can be followed")
    return kernel(*args, **kwargs)


def _cond(predicate: Any, true: Any, false: Any, operands: Any = ()) -> Any:
    return (true if predicate else false)(*operands)


def _scan(combine: Any, init: Any, xs: Any, more: Any = ()) -> Any:
    torch = sys.modules["torch"]
    carry, rows = list(init), []
    for n in range(xs[0].shape[0]):
        made = combine(*carry, *[x.select(0, n) for x in xs], *more)
        carry, row = list(made[: len(init)]), made[len(init) :]
        rows.append(row)
    return (*carry, *[torch.stack(column) for column in zip(*rows, strict=True)])


def _call(function: Any, _: str, *operands: Any) -> Any:
    return function(*operands)


# Their own kernels refuse to run while a mode looks on.
FOLLOWED: dict[str, Callable[..., Any]] = {
    "cond": _cond, "scan": _scan, "invoke_subgraph": _call,
}  # fmt: skip
