"""The modules of a model and what they hold, by path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

HOLDS = ("_modules", "_parameters", "_buffers")


class Place(Struct, gc=False, eq=False):
    """A module of the model: where it stands, and how often it was called."""

    module: Any
    kind: Any  # its class
    path: str
    prefix: str  # of the paths of what is in it
    outer: tuple[str, ...]
    scope: tuple[str, ...]
    childless: bool
    leaf: Any = None  # how a module of its type is answered without being run, if it is
    calls: int = 0
    printed: bool = False  # a node tells all that its line of a module print says


class Held:
    """Parameters and buffers by identity; those that share their numbers share a name."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}  # identity of the tensor -> name it is stored under
        self.buffers: set[int] = set()
        self.tensors: dict[str, Any] = {}  # name -> first tensor stored under it
        self.frozen: list[str] = []  # names of parameters that training leaves as they are
        self._storages: dict[int, str] = {}  # its first array
        self._others: dict[int, list[str]] = {}  # arrays in a storage that has another

    def add(self, arrays: Mapping[str, Any], prefix: str, buffers: bool) -> None:
        """What a module holds."""
        names, tensors, storages = self.names, self.tensors, self._storages
        for own, tensor in arrays.items():
            if tensor is None:
                continue
            try:
                storage = tensor.untyped_storage()._cdata
            except (NotImplementedError, RuntimeError, ValueError):  # lazy, or a wrapper
                storage = id(tensor)
            name = prefix + own
            if storages.setdefault(storage, name) is not name and self._tied(tensor, storage, name):
                continue
            names[id(tensor)] = name
            tensors[name] = tensor
            if buffers:
                self.buffers.add(id(tensor))
            elif not tensor.requires_grad:
                self.frozen.append(name)

    def _tied(self, tensor: Any, storage: int, name: str) -> bool:
        """Whether the numbers are those of an array met before, in the same storage."""
        if id(tensor) in self.names:
            return True
        others = self._others.setdefault(storage, [self._storages[storage]])
        for other in others:
            if _same(self.tensors[other], tensor):
                self.names[id(tensor)] = other
                return True
        others.append(name)
        return False


class Places(dict[int, Place]):
    """Every module by identity, in the order of declaration; a shared one under its first path.

    What they hold is found on the way.
    """

    def __init__(self, model: Any, leaves: Mapping[Any, Any]) -> None:
        super().__init__()
        self.held = Held()
        self._leaves = leaves
        self._shared = False
        self._root = model
        held, leaf = model.__dict__, leaves.get(type(model))
        below = held["_modules"]
        self[id(model)] = Place(model, type(model), "", "", (), (), not below, leaf)
        self._hold(held, "")
        self._walk(below, "", ())

    def _walk(self, children: Any, prefix: str, outer: tuple[str, ...]) -> None:
        for name, child in children.items():
            if child is None:
                continue
            if id(child) in self:
                self._shared = True
                continue
            kind, held = type(child), child.__dict__
            if "_modules" not in held:  # of a traced module, which hands on what another holds
                held = {own: getattr(child, own) for own in HOLDS}
            path, scope, below = prefix + name, (*outer, name), held["_modules"]
            start = path + "."
            self[id(child)] = Place(
                child, kind, path, start, outer, scope, not below, self._leaves.get(kind)
            )
            if held["_parameters"] or held["_buffers"]:
                self._hold(held, start)
            if below:
                self._walk(below, start, scope)

    def _hold(self, held: dict[str, Any], prefix: str) -> None:
        self.held.add(held["_parameters"], prefix, False)
        if held["_buffers"]:
            self.held.add(held["_buffers"], prefix, True)

    def several(self) -> dict[str, int]:
        """Modules that stand in more than one place, by path: in how many."""
        if not self._shared:
            return {}
        ways: dict[int, int] = {}

        def walk(module: Any) -> None:
            ways[id(module)] = ways.get(id(module), 0) + 1
            for child in {id(child): child for child in module._modules.values()}.values():
                if child is not None:
                    walk(child)

        walk(self._root)
        return {self[module].path: count for module, count in ways.items() if count > 1}


def _same(a: Any, b: Any) -> bool:
    """Whether two tensors of one storage are the same numbers."""
    return bool(a.shape == b.shape and a.storage_offset() == b.storage_offset())
