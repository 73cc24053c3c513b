"""The modules of a model and what they hold, by path."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from layerscope.errors import ModelError

HOLDS = ("_modules", "_parameters", "_buffers")
NO_STORAGE = (NotImplementedError, RuntimeError, ValueError)  # of lazy ones, and of wrappers


class ModuleInfo(Struct, gc=False, eq=False):
    """A module of the model: where it stands, and how often it was called."""

    module: Any
    kind: Any  # its class
    path: str
    outer: tuple[str, ...]
    childless: bool
    leaf: Any = None  # how a module of its type is answered without being run, if it is
    held: Any = None  # attributes of the module, or of its shadow as soon as there is one
    shadow: Any = None  # what is run in its place
    calls: int = 0
    printed: bool = False  # a node tells all that its line of a module print says
    prefix: str = ""  # of the paths of what is in it
    scope: tuple[str, ...] = ()  # of what is in it

    def opened(self) -> ModuleInfo:
        """With its prefix and scope, which are told when it is entered: most are never."""
        if self.path and not self.scope:
            own = self.path[sum([len(each) + 1 for each in self.outer]) :]
            self.prefix, self.scope = f"{self.path}.", (*self.outer, own)
        return self


class ParamTable:
    """Parameters and buffers by identity; those that share their numbers share a name."""

    def __init__(self, storage_of: Callable[[Any], int] = id) -> None:
        self.names: dict[int, str] = {}  # identity of the tensor -> name it is stored under
        self.buffers: set[int] = set()
        self.tensors: dict[str, Any] = {}  # name -> first tensor stored under it
        self.frozen: list[str] = []  # names of parameters that training leaves as they are
        self._storage_of = storage_of
        self._storages: dict[int, str] = {}  # its first array; empty until one is looked for
        self._others: dict[int, list[str]] = {}  # arrays in a storage that has another

    def take(self, arrays: dict[str, Any], buffers: set[str]) -> None:
        """All that a model holds, by name."""
        try:
            storages = {*map(self._storage_of, arrays.values())}
        except NO_STORAGE:
            storages = set()
        if len(storages) < len(arrays):  # some share their numbers
            for name, array in arrays.items():
                self.add(name, array, name in buffers)
            return
        self.tensors = arrays
        self.names = dict(zip(map(id, arrays.values()), arrays, strict=True))
        self.buffers = {id(arrays[name]) for name in buffers}
        self.frozen = [
            name
            for name, array in arrays.items()
            if not array.requires_grad and name not in buffers
        ]

    def add(self, name: str, tensor: Any, buffer: bool) -> None:
        """One array more."""
        if not self._storages:
            self._storages = {self._storage(each): own for own, each in self.tensors.items()}
        storage = self._storage(tensor)
        first = self._storages.setdefault(storage, name)
        if first is not name and self._tied(tensor, storage, name):
            return
        self.names[id(tensor)] = name
        self.tensors[name] = tensor
        if buffer:
            self.buffers.add(id(tensor))
        elif not tensor.requires_grad:
            self.frozen.append(name)

    def _storage(self, tensor: Any) -> int:
        try:
            return self._storage_of(tensor)
        except NO_STORAGE:
            return id(tensor)

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


class ModuleTable(dict[int, ModuleInfo]):
    """Every module by identity, in the order of declaration; a shared one under its first path.

    What they hold is found on the way.
    """

    def __init__(self, torch: Any, model: Any, leaves: Mapping[Any, Any]) -> None:
        super().__init__()
        # a storage that Python has seen is an object more, for as long as its tensor lives
        address = getattr(torch._C, "_storage_address", None)
        self.held = ParamTable(address or (lambda tensor: tensor.untyped_storage()._cdata))
        self._leaves = leaves
        self._shared = False
        self._root = model
        self._arrays: dict[str, Any] = {}
        self._buffers: set[str] = set()
        held, leaf = _held(model), leaves.get(type(model))
        below = held["_modules"]
        self[id(model)] = ModuleInfo(model, type(model), "", (), not below, leaf, model.__dict__)
        self._arrays |= {own: each for own, each in held["_parameters"].items() if each is not None}
        self._hold_buffers(held["_buffers"], "")
        try:
            self._walk(below, "", ())
        except RecursionError:
            raise ModelError(too_deep(type(model).__name__, "modules")) from None
        self.held.take(self._arrays, self._buffers)

    def _walk(self, children: Any, prefix: str, outer: tuple[str, ...]) -> None:
        leaf_of, arrays = self._leaves.get, self._arrays
        for name, child in children.items():
            if child is None:
                continue
            known = id(child)
            if known in self:
                self._shared = True
                continue
            kind, held = type(child), child.__dict__
            own = held
            if "_modules" not in held:
                held = _held(child)
            path, below, params = prefix + name, held["_modules"], held["_parameters"]
            self[known] = ModuleInfo(child, kind, path, outer, not below, leaf_of(kind), own)
            if params:
                start = path + "."
                for own, array in params.items():
                    if array is not None:
                        arrays[start + own] = array
            if held["_buffers"]:
                self._hold_buffers(held["_buffers"], path + ".")
            if below:
                self._walk(below, path + ".", (*outer, name))

    def _hold_buffers(self, held: Mapping[str, Any], prefix: str) -> None:
        for own, array in held.items():
            if array is not None:
                self._arrays[prefix + own] = array
                self._buffers.add(prefix + own)

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


def too_deep(name: str, what: str) -> str:
    """What is said where Python's recursion limit is met."""
    limit = sys.getrecursionlimit()
    return (
        f"{name}: {what} are nested too deep for Python's recursion limit of {limit}; "
        "raise it with sys.setrecursionlimit"
    )


def _held(module: Any) -> dict[str, Any]:
    """What a module holds, by what it is."""
    held: dict[str, Any] = module.__dict__
    if "_modules" in held:
        return held
    return {own: getattr(module, own) for own in HOLDS}  # of what a traced one hands on


def _same(a: Any, b: Any) -> bool:
    """Whether two tensors of one storage are the same numbers."""
    return bool(a.shape == b.shape and a.storage_offset() == b.storage_offset())
