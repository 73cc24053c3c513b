"""The modules of a model by path, and their parameters and buffers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from layerscope.errors import ModelError
from layerscope.formats.torch.torch_types import Attrs, Torch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from layerscope.formats.torch.fast_paths import FastPath

TABLES = ("_modules", "_parameters", "_buffers")
NO_STORAGE = (NotImplementedError, RuntimeError, ValueError)  # of lazy tensors, and of wrappers


class ModuleInfo(Struct, gc=False, eq=False):
    """A module of the model: its path, and how often it was called."""

    module: Module
    cls: Any  # its class
    path: str
    outer: tuple[str, ...]  # scope of the module itself: names of the modules around it
    childless: bool
    fast_path: FastPath | None = None  # how a module of this class is captured without a run
    attrs: Any = None  # `__dict__` of the module, or of its shadow as soon as there is one
    shadow: Any = None  # the copy that runs instead of it
    calls: int = 0
    printed: bool = False  # a node has all that the module's line in a printed model says
    prefix: str = ""  # of the paths of its children
    scope: tuple[str, ...] = ()  # of its children and nodes

    def opened(self) -> ModuleInfo:
        """With prefix and scope; those of a childless module are set when it is entered."""
        if self.path and not self.scope:
            own = self.path[sum([len(each) + 1 for each in self.outer]) :]
            self.prefix, self.scope = f"{self.path}.", (*self.outer, own)
        return self


class ParamTable:
    """Parameters and buffers by identity; those that share their storage share a name."""

    def __init__(self, storage_of: Callable[[Tensor], int] = id) -> None:
        self.names: dict[int, str] = {}  # identity of the tensor -> name it is stored under
        self.buffers: set[int] = set()  # identities
        self.tensors: dict[str, Tensor] = {}  # name -> first tensor stored under it
        self.frozen: list[str] = []  # names of parameters that do not require a gradient
        self._storage_of = storage_of
        self._storages: dict[int, str] = {}  # its first array; empty until the first `add`
        self._others: dict[int, list[str]] = {}  # arrays of a storage with more than one

    def fill(self, arrays: dict[str, Tensor], buffers: set[str]) -> None:
        """Set all parameters and buffers of a model, by name."""
        try:
            storages = {*map(self._storage_of, arrays.values())}
        except NO_STORAGE:
            storages = set()
        if len(storages) < len(arrays):  # some share a storage
            for name, array in arrays.items():
                self.add(name, array, name in buffers)
            return
        self.tensors = arrays
        self.names = dict(zip(map(id, arrays.values()), arrays, strict=True))
        self.buffers = {id(arrays[name]) for name in buffers}
        self.frozen = [
            name for name, array in arrays.items() if not (array.requires_grad or name in buffers)
        ]

    def add(self, name: str, tensor: Tensor, buffer: bool) -> None:
        """Add one array."""
        if not self._storages:
            self._storages = {self._storage(each): own for own, each in self.tensors.items()}
        storage = self._storage(tensor)
        first = self._storages.setdefault(storage, name)
        if first is not name and self._is_tied(tensor, storage, name):
            return
        self.names[id(tensor)] = name
        self.tensors[name] = tensor
        if buffer:
            self.buffers.add(id(tensor))
        elif not tensor.requires_grad:
            self.frozen.append(name)

    def add_alias(self, tensor: Tensor, name: str, *, buffer: bool) -> None:
        """Store another tensor under the name of an array: a cast, a copy, a view of all of it."""
        self.names[id(tensor)] = name
        if buffer:
            self.buffers.add(id(tensor))

    def _storage(self, tensor: Tensor) -> int:
        try:
            return self._storage_of(tensor)
        except NO_STORAGE:
            return id(tensor)

    def _is_tied(self, tensor: Tensor, storage: int, name: str) -> bool:
        """Whether the elements are those of an earlier array in the same storage."""
        if id(tensor) in self.names:
            return True
        others = self._others.setdefault(storage, [self._storages[storage]])
        for other in others:
            if _same_elements(self.tensors[other], tensor):
                self.names[id(tensor)] = other
                return True
        others.append(name)
        return False


class ModuleTable(dict[int, ModuleInfo]):
    """Every module by identity, in the order of declaration; a shared one under its first path."""

    def __init__(self, torch: Torch, model: Module, fast_paths: Mapping[type, FastPath]) -> None:
        super().__init__()
        # `untyped_storage()` makes a Python object that lives as long as its tensor
        address = getattr(torch._C, "_storage_address", None)
        self.params = ParamTable(address or (lambda tensor: tensor.untyped_storage()._cdata))
        self._fast_paths = fast_paths
        self._shared = False
        self._root = model
        self.arrays: dict[str, Tensor] = {}  # parameters and buffers by path
        self._buffers: set[str] = set()
        tables, fast_path = _tables(model), fast_paths.get(type(model))
        below = tables["_modules"]
        self[id(model)] = ModuleInfo(
            model, type(model), "", (), not below, fast_path, model.__dict__
        )
        self.arrays |= {
            own: each for own, each in tables["_parameters"].items() if each is not None
        }
        for own, array in tables["_buffers"].items():
            if array is not None:
                self.arrays[own] = array
                self._buffers.add(own)
        try:
            self._walk(below, "", ())
        except RecursionError:
            raise ModelError(too_deep(type(model).__name__, "modules")) from None
        self.params.fill(dict(self.arrays), self._buffers)

    def _walk(self, children: dict[str, Module], prefix: str, outer: tuple[str, ...]) -> None:
        fast_path_of, arrays, add_buffer = self._fast_paths.get, self.arrays, self._buffers.add
        for name, child in children.items():
            if child is None:
                continue
            identity = id(child)
            if identity in self:
                self._shared = True
                continue
            cls, attrs = type(child), child.__dict__
            tables = attrs if "_modules" in attrs else _tables(child)
            path, below, params = prefix + name, tables["_modules"], tables["_parameters"]
            info = self[identity] = ModuleInfo(
                child, cls, path, outer, not below, fast_path_of(cls), attrs
            )
            if params:
                start = path + "."
                for own, array in params.items():
                    if array is not None:
                        arrays[start + own] = array
            buffers = tables["_buffers"]
            if buffers:
                start = path + "."
                for own, array in buffers.items():
                    if array is not None:
                        arrays[start + own] = array
                        add_buffer(start + own)
            if below:
                info.prefix, info.scope = path + ".", (*outer, name)
                self._walk(below, info.prefix, info.scope)

    def array_paths(self) -> tuple[tuple[str, ...], dict[str, str]]:
        """Paths of all parameters and buffers, and the other path that a tied one is stored under.

        Arrays of a shared module have a path for each of the paths of the module.
        """
        names, arrays = self.params.names, self.arrays
        if self._shared:
            found = dict(self._root.named_parameters(remove_duplicate=False))
            arrays = {**found, **dict(self._root.named_buffers(remove_duplicate=False))}
        elif len(self.params.tensors) == len(arrays):
            return tuple(arrays), {}
        stored = {path: names[id(array)] for path, array in arrays.items()}
        return tuple(arrays), {path: first for path, first in stored.items() if first != path}

    def uses(self) -> dict[str, int]:
        """How many paths each shared module has, by its first path."""
        if not self._shared:
            return {}
        paths: dict[int, int] = {}

        def walk(module: Module) -> None:
            paths[id(module)] = paths.get(id(module), 0) + 1
            for child in {id(child): child for child in module._modules.values()}.values():
                if child is not None:
                    walk(child)

        walk(self._root)
        return {self[module].path: count for module, count in paths.items() if count > 1}


def too_deep(name: str, what: str) -> str:
    """The message for a model that exceeds Python's recursion limit."""
    limit = sys.getrecursionlimit()
    return (
        f"{name}: {what} are nested too deep for Python's recursion limit of {limit}; "
        "raise it with sys.setrecursionlimit"
    )


def _tables(module: Module) -> Attrs:
    """The tables of children, parameters and buffers of a module."""
    attrs: Attrs = module.__dict__
    if "_modules" in attrs:
        return attrs
    return {own: getattr(module, own) for own in TABLES}  # a traced module has them in C++


def class_name(cls: type) -> str:
    """The class of a module, with its package unless that is torch.nn."""
    if cls.__module__.startswith("torch.nn."):
        return cls.__name__
    return f"{cls.__module__}.{cls.__qualname__}"


def _same_elements(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors of one storage have the same elements."""
    return bool(a.shape == b.shape and a.storage_offset() == b.storage_offset())
