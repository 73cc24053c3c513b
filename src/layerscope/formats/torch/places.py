"""The modules of a model and what they hold, by path."""

from __future__ import annotations

from typing import Any


class Place:
    """A module of the model: where it stands, and how often it was called."""

    __slots__ = ("calls", "childless", "module", "outer", "path", "prefix", "printed", "scope")

    def __init__(self, module: Any, path: str, outer: tuple[str, ...], scope: Any) -> None:
        self.module = module
        self.path = path
        self.outer = outer
        self.scope = scope
        self.prefix = f"{path}." if path else ""
        self.childless = not module._modules
        self.calls = 0
        self.printed = False  # a node tells all that its line of a module print says


def places_of(model: Any) -> dict[int, Place]:
    """Every module by identity, in the order of declaration; a shared one under its first path."""
    found: dict[int, Place] = {}

    def walk(module: Any, path: str, outer: tuple[str, ...], scope: tuple[str, ...]) -> None:
        found[id(module)] = Place(module, path, outer, scope)
        start = f"{path}." if path else ""
        for name, child in module._modules.items():
            if child is not None and id(child) not in found:
                walk(child, start + name, scope, (*scope, *name.split(".")))

    walk(model, "", (), ())
    return found


def several_places(model: Any) -> dict[int, int]:
    """Modules that stand in more than one place, by identity: in how many."""
    ways: dict[int, int] = {}

    def walk(module: Any) -> None:
        ways[id(module)] = ways.get(id(module), 0) + 1
        for child in {id(child): child for child in module._modules.values()}.values():
            if child is not None:
                walk(child)

    if len({id(m) for m in model.modules()}) != sum(len(m._modules) for m in model.modules()) + 1:
        walk(model)
    return {module: count for module, count in ways.items() if count > 1}


class Held:
    """Parameters and buffers by identity; those that share their numbers share a name."""

    def __init__(self, places: dict[int, Place]) -> None:
        self.names: dict[int, str] = {}  # identity of the tensor -> name it is stored under
        self.buffers: set[int] = set()
        self.tensors: dict[str, Any] = {}  # name -> first tensor stored under it
        storages: dict[int, list[str]] = {}
        names = self.names
        for place in places.values():
            module, prefix = place.module, place.prefix
            for name, tensor in module._parameters.items():
                if tensor is not None and id(tensor) not in names:
                    self._add(tensor, prefix + name, storages)
            for name, tensor in module._buffers.items():
                if tensor is not None and id(tensor) not in names:
                    self._add(tensor, prefix + name, storages)
                    self.buffers.add(id(tensor))

    def _add(self, tensor: Any, name: str, storages: dict[int, list[str]]) -> None:
        try:
            storage = tensor.untyped_storage()._cdata
        except (NotImplementedError, RuntimeError, ValueError):  # of a lazy module, or a wrapper
            storage = id(tensor)
        others = storages.get(storage)
        if others is None:
            storages[storage] = [name]
        else:
            for other in others:
                if _same(self.tensors[other], tensor):
                    self.names[id(tensor)] = other
                    return
            others.append(name)
        self.names[id(tensor)] = name
        self.tensors[name] = tensor


def _same(a: Any, b: Any) -> bool:
    """Whether two tensors of one storage are the same numbers."""
    return bool(a.shape == b.shape and a.storage_offset() == b.storage_offset())
