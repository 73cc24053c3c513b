"""Attributes of modules, copied for their shadows.

Containers are copied, with shadows instead of the modules in them. Methods, functions with
closures, partial objects and plain objects are copied if they refer to a module. Everything else is
shared.
"""

from __future__ import annotations

import copy
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import cache, partial
from types import CellType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod

from layerscope.formats.torch.torch_types import Torch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

COPIED = (dict, OrderedDict, list, set)  # containers that are copied whatever is in them
ATOMS: set[type] = {
    type(None), bool, int, float, complex, str, bytes, type, range, slice, type(len), type(sys),
}  # fmt: skip
MOST = 10_000  # items of a container that is searched for modules
DEEPEST = 4  # objects inside objects that are searched for modules


class AttributeCopies:
    """Copies the values of attributes for the shadows of one run.

    `shadow_of` returns the shadow of a module; a weak reference, because its owner has this object.
    Tensors are copied with `copy_tensor`, if it is set.
    """

    def __init__(
        self,
        torch: Torch,
        shadow_of: WeakMethod[Callable[[Module], Any]],
        copy_tensor: Callable[[Tensor], Tensor] | None,
    ) -> None:
        self._module, self._tensor = torch.nn.Module, torch.Tensor
        self._shadow_of = shadow_of
        self._copy_tensor = copy_tensor
        self._atoms = atoms(torch)
        self._copies: dict[int, Any] = {}  # by identity of the original
        self._references: list[object] = []  # so that no other object gets the id of an original
        self._found: dict[int, bool] = {}  # by identity: whether a value refers to a module

    def close(self) -> None:
        """Free all copies."""
        self._copies.clear()
        self._references.clear()
        self._found.clear()
        self._copy_tensor = None

    def copy(self, value: Any) -> Any:
        """A copy of a container, with shadows instead of modules; anything else as it is."""
        kind = type(value)
        if kind in self._atoms:
            if self._copy_tensor is not None and isinstance(value, self._tensor):
                return self._copy_tensor(value)
            return value
        found = self._copies.get(id(value))
        if found is not None:
            return found
        if issubclass(kind, self._module):
            shadow_of = self._shadow_of()
            assert shadow_of is not None
            return shadow_of(value)
        if kind is MethodType:
            owner = self.copy(value.__self__)
            return value if owner is value.__self__ else MethodType(value.__func__, owner)
        if issubclass(kind, (list, dict, set, tuple, frozenset)):
            return self._container(value, kind)
        if not self._has_module(value, DEEPEST):
            return value
        if kind is FunctionType:
            return self._function(value)
        if isinstance(value, partial):
            kwargs = {name: self.copy(each) for name, each in value.keywords.items()}
            args = [self.copy(each) for each in value.args]
            return type(value)(self.copy(value.func), *args, **kwargs)
        return self._object(value)

    def _container(self, value: Any, kind: Any) -> Any:
        items = _items(value)
        if len(items) > MOST and kind in COPIED and not _any_module(items, self._module):
            return self.keep(value, value.copy())  # a vocabulary, not modules
        plain = self._atoms.issuperset(map(type, items))
        if isinstance(value, dict) and not self._atoms.issuperset(map(type, dict.keys(value))):
            plain = False
        if plain and self._copy_tensor is None:
            if kind in (tuple, frozenset):
                return value
            return self.keep(value, value.copy()) if kind in COPIED else value
        if isinstance(value, (tuple, frozenset)):
            if not self._has_module(value, DEEPEST) and self._copy_tensor is None:
                return value
            each = [self.copy(one) for one in items]
            same = all(one is own for one, own in zip(each, items, strict=True))
            return value if same else _immutable(value, kind, each)
        if kind not in COPIED and not self._has_module(value, DEEPEST):
            return value
        new = _empty(value, kind)
        if new is None:
            return value
        self.keep(value, new)  # first, because it may contain itself
        if isinstance(new, dict):
            base = _dict_base(value)
            for key, each in zip(base.keys(value), items, strict=True):
                base.__setitem__(new, self.copy(key), self.copy(each))
        elif isinstance(new, list):
            list.extend(new, [self.copy(one) for one in items])
        else:
            set.update(new, [self.copy(one) for one in items])
        return new

    def _function(self, function: FunctionType) -> FunctionType:
        """A function with shadows instead of the modules in its closure."""
        before = function.__closure__ or ()
        # cells that refer to no module are shared, such as a list of results
        cells = tuple([
            CellType() if _filled(cell) and self._has_module(cell.cell_contents, DEEPEST)
            else cell
            for cell in before
        ])  # fmt: skip
        new = FunctionType(function.__code__, function.__globals__, function.__name__, None, cells)
        self.keep(function, new)  # first, because it may refer to itself
        for cell, own in zip(cells, before, strict=True):
            if cell is not own:
                cell.cell_contents = self.copy(own.cell_contents)
        if function.__defaults__:
            new.__defaults__ = tuple(map(self.copy, function.__defaults__))
        if function.__kwdefaults__:
            new.__kwdefaults__ = self.copy(function.__kwdefaults__)
        new.__dict__.update(function.__dict__)
        new.__qualname__, new.__module__ = function.__qualname__, function.__module__
        return new

    def _object(self, value: Any) -> Any:
        """A plain object with shadows instead of modules."""
        try:
            new = object.__new__(type(value))
        except TypeError:
            return value
        self.keep(value, new)
        attrs = {name: self.copy(each) for name, each in vars(value).items()}
        object.__setattr__(new, "__dict__", attrs)
        return new

    def keep(self, value: object, new: Any) -> Any:
        """Use this copy of a value from now on."""
        self._references.append(value)
        self._copies[id(value)] = new
        return new

    def _has_module(self, value: Any, depth: int) -> bool:
        """Whether a value refers to a module, through so many objects at most."""
        kind = type(value)
        if kind in self._atoms:
            return False
        if issubclass(kind, self._module):
            return True
        found = self._found.get(id(value))
        if found is not None or depth == 0:
            return bool(found)
        self._found[id(value)] = False
        self._references.append(value)
        inside: list[Any] = []
        if kind is MethodType:
            inside = [value.__self__]
        elif kind is FunctionType:
            inside = [cell.cell_contents for cell in value.__closure__ or () if _filled(cell)]
            inside += value.__defaults__ or ()
            inside += (value.__kwdefaults__ or {}).values()
        elif isinstance(value, partial):
            inside = [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, dict):
            inside = [*dict.keys(value), *dict.values(value)]
        elif issubclass(kind, (list, tuple, set, frozenset)):
            inside = _items(value)
        elif _is_plain_object(value):
            inside = [*vars(value).values()]
        atoms = self._atoms
        refers = any(
            self._has_module(each, depth - 1) for each in inside if type(each) not in atoms
        )
        self._found[id(value)] = refers
        return refers


@cache
def slots(cls: type) -> tuple[str, ...]:
    """Names of the slots of a class."""
    found: list[str] = []
    for base in cls.__mro__:
        own = base.__dict__.get("__slots__", ())
        found += [own] if isinstance(own, str) else own
    return tuple([name for name in found if name not in ("__dict__", "__weakref__")])


@cache
def atoms(torch: Torch) -> frozenset[type]:
    """Types of values that refer to no module and are immutable, or are tensors."""
    own = (torch.Tensor, torch.nn.Parameter, torch.dtype, torch.device, torch.Size)
    return frozenset((*ATOMS, *own, torch.memory_format, torch.layout, torch.Generator))


def _items(value: Any) -> list[Any]:
    """What a container has, by methods of the built-in class: a subclass may override them."""
    if isinstance(value, dict):
        return [*_dict_base(value).values(value)]
    base: Any = next(base for base in (list, tuple, set, frozenset) if isinstance(value, base))
    return [*base.__iter__(value)]


def _dict_base(value: Any) -> Any:
    """The built-in class of a dictionary: an OrderedDict has an order of its own."""
    return OrderedDict if isinstance(value, OrderedDict) else dict


def _empty(value: Any, kind: Any) -> Any:
    """An empty container of the same class, with the same attributes; None if there can be none."""
    try:
        if kind in COPIED:
            return kind()
        new = copy.copy(value)
        if type(new) is not kind:
            return None
        base: Any = _dict_base(new) if isinstance(new, dict) else list
        (set if isinstance(new, set) else base).clear(new)
    except Exception:  # of a class that cannot be copied
        return None
    return new


def _immutable(value: Any, kind: Any, items: list[Any]) -> Any:
    """A tuple or frozenset of the same class with other items."""
    base: Any = tuple if isinstance(value, tuple) else frozenset
    try:  # a subclass may have another constructor
        new = base.__new__(kind, items)
    except TypeError:  # of a class in C, such as torch.return_types.max
        return kind(items)
    if hasattr(new, "__dict__"):
        new.__dict__.update(vars(value))
    return new


def _any_module(values: Iterable[object], module: type) -> bool:
    return any(issubclass(cls, module) for cls in {*map(type, values)})


def _filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _is_plain_object(value: object) -> bool:
    """Whether all the state of an object is in its `__dict__`."""
    kind: Any = type(value)
    return (
        kind.__new__ is object.__new__
        and not isinstance(value, type)
        and hasattr(value, "__dict__")
        and not slots(kind)
    )
