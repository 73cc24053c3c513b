"""What PyTorch keeps per thread, set aside while a model is captured, and random states."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@contextmanager
def no_modes(torch: Any) -> Iterator[None]:
    """Set aside the dispatch and function modes of this thread, such as FlopCounterMode.

    They would see the calls of a capture, which are no calls of the user's.
    """
    c = torch._C
    dispatch: list[Any] = []
    function: list[Any] = []
    stack = torch.utils._python_dispatch
    while c._len_torch_dispatch_stack():
        dispatch.append(stack._pop_mode())
    while c._len_torch_function_stack():
        function.append(c._pop_torch_function_stack())
    try:
        yield
    finally:
        while function:
            c._push_on_torch_function_stack(function.pop())
        while dispatch:
            stack._push_mode(dispatch.pop())


@contextmanager
def same_random_states(torch: Any) -> Iterator[None]:
    """Put random states back that the model's own code changes.

    Not while there are other threads, which may have drawn in between: they would draw the same
    numbers again.
    """
    if threading.active_count() > 1:
        yield
        return
    states: list[tuple[Callable[[], Any], Callable[[Any], object], Any]] = [
        (torch.get_rng_state, torch.set_rng_state, torch.get_rng_state()),
        (random.getstate, random.setstate, random.getstate()),
    ]
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        states.append((numpy.get_state, numpy.set_state, numpy.get_state()))
    try:
        yield
    finally:
        if threading.active_count() == 1:
            for get, put, before in states:
                if not _same(torch, get(), before):
                    put(before)


def _same(torch: Any, now: Any, before: Any) -> bool:
    if isinstance(now, torch.Tensor):
        return bool(torch.equal(now, before))
    if now[0] == "MT19937":  # of numpy, with an array
        return bool((now[1] == before[1]).all() and now[2:] == before[2:])
    return bool(now == before)


def pass_through(torch: Any) -> Any:
    """A function mode that does nothing. While there is one, attention takes no fast path."""
    return _pass_through(torch)()


@cache
def _pass_through(torch: Any) -> Any:
    def function(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))

    return type(
        "PassThrough", (torch.overrides.TorchFunctionMode,), {"__torch_function__": function}
    )
