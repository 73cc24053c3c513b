"""A model is left as it was found: attributes, arrays, flags, random states."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain, filterfalse
from operator import is_, itemgetter, methodcaller
from typing import Any

from layerscope.formats.torch.places import Places

CONTAINERS = (dict, list, set)
values_of = methodcaller("values")


class Dicts:
    """Dicts as they were: what all of them hold in one row, which is compared at one go."""

    def __init__(self, dicts: list[dict[Any, Any]]) -> None:
        self._dicts = dicts
        self._sizes = [*map(len, dicts)]
        self._keys = [*chain.from_iterable(dicts)]
        self._values = [*chain.from_iterable(map(values_of, dicts))]

    def put_back(self) -> None:
        """Put keys, their order and the very values back where any is another."""
        dicts = self._dicts
        if (
            [*map(len, dicts)] == self._sizes
            and self._same_keys()
            and all(map(is_, chain.from_iterable(map(values_of, dicts)), self._values))
        ):
            return
        start = 0
        for held, size in zip(dicts, self._sizes, strict=True):
            keys, values = self._keys[start : start + size], self._values[start : start + size]
            start += size
            if (
                len(held) != size
                or not all(map(is_, held, keys))
                or not all(map(is_, held.values(), values))
            ):
                held.clear()
                held.update(zip(keys, values, strict=True))

    def _same_keys(self) -> bool:
        try:
            return [*chain.from_iterable(self._dicts)] == self._keys
        except Exception:  # of keys that are no names, one may refuse to be compared
            return False


class Untouched:
    """Puts back what a forward changes in modules and random states, whether it ends well or not.

    What a forward may change is noted when `look` is called: before the first code that is not
    ours. With `short`, leaves are not run: only others may have put their hands on them, on what
    every module has.
    """

    def __init__(self, torch: Any, places: Places, *, short: bool) -> None:
        self.torch, self.places, self.short = torch, places, short
        self._looked = False
        self._dicts = Dicts([])
        self._empty: list[Any] = []
        self._others: list[tuple[Any, Any]] = []  # lists and sets, each with a copy
        self._random: list[tuple[Callable[[Any], object], Any]] = []

    def look(self) -> None:
        """Note how everything is."""
        if self._looked:
            return
        self._looked = True
        leaves: list[dict[str, Any]] = []
        modules: list[dict[str, Any]] = []
        for place in self.places.values():
            known = self.short and place.leaf is not None
            (leaves if known else modules).append(place.module.__dict__)
        try:
            inside = [*chain.from_iterable(map(common_to(self.torch), leaves))]
        except KeyError:  # made by another version of PyTorch
            modules += leaves
            leaves, inside = [], []
        inside += [
            value for held in modules for value in held.values() if isinstance(value, CONTAINERS)
        ]
        self._empty = [*filterfalse(None, inside)]
        full = [*filter(None, inside)]
        self._others = [(each, each.copy()) for each in full if not isinstance(each, dict)]
        inner = [each for each in full if isinstance(each, dict)]
        self._dicts = Dicts([*leaves, *modules, *inner])

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
        for container in filter(None, self._empty):
            container.clear()
        for container, copy in self._others:
            _put_back(container, copy)
        self._dicts.put_back()
        # They know of what runs the model, which knows of them.
        self._dicts, self._empty, self._others = Dicts([]), [], []


@cache
def common_to(torch: Any) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """What fetches the containers that every module has: arrays, children, hooks."""
    held = vars(torch.nn.Module())
    return itemgetter(*[name for name, value in held.items() if isinstance(value, CONTAINERS)])


def _put_back(container: Any, copy: Any) -> None:
    """Contents of a list or a set."""
    if isinstance(container, list):
        if len(container) != len(copy) or not all(map(is_, container, copy)):
            container[:] = copy
    elif container != copy:
        container.clear()
        container.update(copy)


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
