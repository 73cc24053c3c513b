"""A model is left as it was found: attributes, arrays, flags, random states."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import is_
from typing import Any

from layerscope.formats.torch.places import Places

CONTAINERS = (dict, list, set)
Saved = tuple[dict[str, Any], tuple[str, ...], tuple[Any, ...]]  # it, its keys, what was in it


class Untouched:
    """Puts back what a forward changes in modules and random states, whether it ends well or not.

    What a forward may change is noted when `look` is called: before the first code that is not
    ours. With `short`, leaves are not run: only others may have put their hands on them.
    """

    def __init__(self, torch: Any, places: Places, *, short: bool) -> None:
        self.torch, self.places, self.short = torch, places, short
        self._looked = False
        self._modules: list[tuple[Any, Any, Any]] = []
        self._arrays: list[Saved] = []
        self._leaves: list[Saved] = []
        self._random: list[tuple[Callable[[Any], object], Any]] = []

    def look(self) -> None:
        """Note how everything is."""
        if self._looked:
            return
        self._looked = True
        leaves, all_arrays = self._leaves, self._arrays
        keys: dict[tuple[str, ...], tuple[str, ...]] = {}

        def saved(held: dict[str, Any]) -> Saved:
            names = (*held,)
            return held, keys.setdefault(names, names), (*held.values(),)

        for place in self.places.values():
            held = place.module.__dict__
            if self.short and place.leaf is not None:
                leaves.append(saved(held))
                if held["_parameters"]:
                    all_arrays.append(saved(held["_parameters"]))
                if held["_buffers"]:
                    all_arrays.append(saved(held["_buffers"]))
            else:
                self._modules.append((held, held.copy(), _insides(held)))

    def __enter__(self) -> None:
        torch = self.torch
        self._random = [
            (torch.set_rng_state, torch.get_rng_state()),
            (random.setstate, random.getstate()),
        ]
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            self._random.append((numpy.random.set_state, numpy.random.get_state()))
        self._fast = self.torch.backends.mha.get_fastpath_enabled()
        self.torch.backends.mha.set_fastpath_enabled(False)

    def __exit__(self, *_: object) -> None:
        self.torch.backends.mha.set_fastpath_enabled(self._fast)
        for put, state in self._random:
            put(state)
        for now, attributes, insides in self._modules:
            _put_back(now, attributes, insides)
        for now, names, values in (*self._leaves, *self._arrays):
            if (*now,) != names or not all(map(is_, now.values(), values)):
                now.clear()
                now.update(zip(names, values, strict=True))
        for notes in (self._modules, self._leaves, self._arrays):
            notes.clear()  # they know of what runs the model, which knows of them


def _insides(attributes: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Containers among the attributes, each with a copy of what is in it, None for nothing."""
    return [
        (value, value.copy() if value else None)
        for value in attributes.values()
        if isinstance(value, CONTAINERS)
    ]


def _put_back(now: dict[str, Any], attributes: dict[str, Any], insides: Any) -> None:
    for container, copy in insides:
        if copy is None:
            if container:
                container.clear()
        elif isinstance(container, list):
            container[:] = copy
        elif container != copy if isinstance(container, set) else _differs(container, copy):
            container.clear()
            container.update(copy)
    if _differs(now, attributes):
        now.clear()
        now.update(attributes)


def _differs(now: dict[Any, Any], before: dict[Any, Any]) -> bool:
    """Whether keys, their order or any value is another thing."""
    return [*now] != [*before] or [*map(id, now.values())] != [*map(id, before.values())]


@contextmanager
def same_buffers(torch: Any, model: Any) -> Iterator[None]:
    """Put numbers of buffers back that a run with real numbers changes."""
    before = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, copy in before:
                if not torch.equal(buffer, copy):
                    buffer.copy_(copy)
