"""What PyTorch keeps per thread, set aside while a model is captured, and random states."""

from __future__ import annotations

import ctypes
import random
import sys
import threading
from collections.abc import Iterator
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
    of_torch, of_python = torch.get_rng_state(), random.getstate()
    numpy = NumpyState()
    try:
        yield
    finally:
        if threading.active_count() == 1:
            torch.set_rng_state(of_torch)  # in a tenth of the time of a comparison
            random.setstate(of_python)
            numpy.put_back()


class NumpyState:
    """The state of NumPy's global generator, if NumPy is loaded. It takes long to read and write.

    Whether it changed is seen in memory: a Mersenne Twister is 624 words and a position. A normal
    number kept for the next call is no part of it; without one, none can come without the rest.
    """

    SIZE = 625 * 4

    def __init__(self) -> None:
        self._numpy = numpy = sys.modules.get("numpy.random")
        self._generator: Any = None
        if numpy is not None:
            self._before = numpy.get_state(legacy=False)
            if self._before["bit_generator"] == "MT19937" and not self._before["has_gauss"]:
                self._generator = getattr(numpy, "get_bit_generator", lambda: None)()
        self._memory = self._look()

    def _look(self) -> bytes | None:
        if self._generator is None:
            return None
        return ctypes.string_at(self._generator.ctypes.state_address, self.SIZE)

    def put_back(self) -> None:
        """Write the state where it may have changed."""
        if self._numpy is not None and (self._memory is None or self._look() != self._memory):
            self._numpy.set_state(self._before)


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
