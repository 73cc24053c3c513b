"""A model is left as it was found: attributes, arrays, flags, random states."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from layerscope.formats.torch.places import Place

CONTAINERS = (dict, list, set)


@contextmanager
def untouched(torch: Any, places: dict[int, Place], answered: Any) -> Iterator[None]:
    """Put back what a forward changes in modules, whether it ends well or not.

    Modules of a type in `answered` are not run: only others may have put their hands on them.
    """
    before = []
    plain = []
    for place in places.values():
        module = place.module
        if type(module) in answered:
            plain.append((module.__dict__, module.__dict__.copy()))
        else:
            before.append((module, dict(module.__dict__), _insides(module.__dict__)))
    state, own = torch.get_rng_state(), random.getstate()
    numpy = sys.modules.get("numpy")
    drawn = numpy.random.get_state() if numpy is not None else None
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        torch.set_rng_state(state)
        random.setstate(own)
        if numpy is not None:
            numpy.random.set_state(drawn)
        for module, attributes, insides in before:
            _put_back(module, attributes, insides)
        for now, saved in plain:
            if _changed(now, saved):
                now.clear()
                now.update(saved)


def _changed(now: dict[str, Any], saved: dict[str, Any]) -> bool:
    """Whether anything is another thing now; what is the same thing is not looked into."""
    try:
        return now != saved
    except (RuntimeError, ValueError):  # of tensors that are compared: one is not the other
        return True


def _insides(attributes: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Containers among the attributes, each with a copy of what is in it."""
    return [
        (value, value.copy())
        for value in attributes.values()
        if isinstance(value, CONTAINERS) and value
    ]


def _put_back(module: Any, attributes: dict[str, Any], insides: list[tuple[Any, Any]]) -> None:
    for container, copy in insides:
        if isinstance(container, list):
            container[:] = copy
        elif container != copy if isinstance(container, set) else _differs(container, copy):
            container.clear()
            container.update(copy)
    copied = {id(container) for container, _ in insides}
    for value in attributes.values():  # empty before, filled since
        if isinstance(value, CONTAINERS) and value and id(value) not in copied:
            value.clear()
    now = module.__dict__
    if now.keys() != attributes.keys() or _differs(now, attributes):
        now.clear()
        now.update(attributes)


def _differs(now: dict[Any, Any], before: dict[Any, Any]) -> bool:
    return list(now) != list(before) or any(now[key] is not before[key] for key in before)


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
