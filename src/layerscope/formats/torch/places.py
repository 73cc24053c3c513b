"""The modules of a model and what they hold, by path."""

from __future__ import annotations

from typing import Any


class Place:
    """A module of the model: where it stands, and how often it was called."""

    __slots__ = ("calls", "childless", "module", "outer", "path", "prefix", "printed", "scope")

    def __init__(self, module: Any, path: str) -> None:
        self.module = module
        self.path = path
        self.scope = tuple(path.split(".")) if path else ()
        self.outer = self.scope[:-1]
        self.prefix = f"{path}." if path else ""
        self.childless = not module._modules
        self.calls = 0
        self.printed = False  # a node tells all that its line of a module print says


def places_of(model: Any) -> dict[int, Place]:
    """Every module by identity, in the order of declaration; a shared one under its first path."""
    found: dict[int, Place] = {}

    def walk(module: Any, path: str) -> None:
        found[id(module)] = Place(module, path)
        start = f"{path}." if path else ""
        for name, child in module._modules.items():
            if child is not None and id(child) not in found:
                walk(child, start + name)

    walk(model, "")
    return found


class Held:
    """Parameters and buffers by identity; those that share a storage share a name."""

    def __init__(self, places: dict[int, Place]) -> None:
        self.names: dict[int, str] = {}  # identity of the tensor -> name it is stored under
        self.buffers: set[int] = set()
        self.tensors: dict[str, Any] = {}  # name -> first tensor stored under it
        by_storage: dict[Any, str] = {}
        for place in places.values():
            for kind in (place.module._parameters, place.module._buffers):
                for name, tensor in kind.items():
                    if tensor is None or id(tensor) in self.names:
                        continue
                    full = by_storage.setdefault(_where(tensor), place.prefix + name)
                    self.names[id(tensor)] = full
                    self.tensors.setdefault(full, tensor)
                    if kind is place.module._buffers:
                        self.buffers.add(id(tensor))


def _where(tensor: Any) -> Any:
    """What two tensors have in common if they are the same numbers in memory."""
    try:
        return (tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape)
    except (NotImplementedError, RuntimeError, ValueError):  # of a lazy module, or a wrapper
        return id(tensor)
