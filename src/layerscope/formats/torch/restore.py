"""State of the thread and of the process that a capture restores: modes and random states."""

from __future__ import annotations

import ctypes
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from layerscope.formats.torch.torch_types import Args, Kwargs, Result, Torch


@contextmanager
def no_modes(torch: Torch) -> Iterator[None]:
    """Set aside the dispatch and function modes of this thread, such as FlopCounterMode.

    They would record the operators of a capture, which the user did not call.
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
def restored_random_states(torch: Torch) -> Iterator[None]:
    """Restore the random states of PyTorch, Python and NumPy, which a forward may change.

    Not while there are other threads: one that used a generator meanwhile would get the same
    numbers again.
    """
    if threading.active_count() > 1:
        yield
        return
    of_torch, of_python = torch.get_rng_state(), random.getstate()
    numpy = NumpySnapshot()
    try:
        yield
    finally:
        if threading.active_count() == 1:
            torch.set_rng_state(of_torch)  # a comparison takes ten times as long
            random.setstate(of_python)
            numpy.restore()


class NumpySnapshot:
    """The state of NumPy's global generator, if NumPy is loaded. It is slow to read and write.

    Whether it changed is read from memory: the state of a Mersenne Twister is 624 words and a
    position. The cached normal number (`has_gauss`) is not part of it, so that a state that has one
    is always restored.
    """

    SIZE = 625 * 4

    def __init__(self) -> None:
        self._numpy = numpy = sys.modules.get("numpy.random")
        self._generator: Any = None
        if numpy is not None:
            self._before = numpy.get_state(legacy=False)
            if self._before["bit_generator"] == "MT19937" and not self._before["has_gauss"]:
                self._generator = getattr(numpy, "get_bit_generator", lambda: None)()
        self._memory = self._take()

    def _take(self) -> bytes | None:
        if self._generator is None:
            return None
        return ctypes.string_at(self._generator.ctypes.state_address, self.SIZE)

    def restore(self) -> None:
        """Write the state back if it may have changed."""
        if self._numpy is not None and (self._memory is None or self._take() != self._memory):
            self._numpy.set_state(self._before)


def pass_through(torch: Torch) -> AbstractContextManager[object]:
    """A function mode that does nothing. Inside one, PyTorch's attention takes no fast path."""
    mode: AbstractContextManager[object] = _pass_through(torch)()
    return mode


@cache
def _pass_through(torch: Torch) -> Any:
    def function(
        self: object, func: Any, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> Result:
        return func(*args, **(kwargs or {}))

    return type(
        "PassThrough", (torch.overrides.TorchFunctionMode,), {"__torch_function__": function}
    )
