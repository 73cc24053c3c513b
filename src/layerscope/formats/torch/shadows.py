"""Shadow modules: what a capture runs, so that nothing is written to the user's modules.

A shadow has the class of its module and a copy of its attributes: the same parameters and buffers,
copies of its containers, and shadows in place of the modules that any of these refer to. What a
forward writes stays in the shadow. Another thread that runs the module itself sees nothing of it.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from functools import cache, partial
from itertools import islice
from operator import itemgetter
from types import CellType, FunctionType, MethodType
from typing import Any, NamedTuple

from layerscope.formats.torch.module_table import ModuleInfo, ModuleTable
from layerscope.formats.torch.scripted import scripted_copy

SEAM = "_compiled_call_impl"  # where PyTorch looks for a compiled forward, before it runs one
ADVICE = "warn_if_padding_and_no_attention_mask"
COPIED = (dict, OrderedDict, list, set)  # containers that are copied whatever they hold
ATOMS: set[type] = {
    type(None), bool, int, float, complex, str, bytes, type, range, slice, type(len), type(sys),
}  # fmt: skip
MOST = 10_000  # items of a container that is searched for modules
ATTRIBUTES: dict[Any, int] = {}  # how many those of a class of leaves have
DEEPEST = 4  # objects inside objects that are searched for modules


class Rerun(BaseException):
    """What a run does without for speed turns out to be needed: the forward is run again with it.

    Not an Exception, because models catch those.
    """

    def __init__(self, option: str) -> None:
        super().__init__(option)
        self.option = option


class NoHooks(OrderedDict[Any, Any]):
    """The hook table of all shadows that have no hooks. It stays empty."""

    def __setitem__(self, key: Any, value: Any) -> None:
        raise Rerun("own_hooks")


class NoNames(set[Any]):
    """The names of non-persistent buffers of all shadows of leaves. It stays empty."""

    def add(self, name: Any) -> None:
        """Not here: the forward is run again on shadows with a set of their own."""
        raise Rerun("own_hooks")


class Layout(NamedTuple):
    """The attributes that `nn.Module.__init__` sets, which stand first in every module."""

    size: int  # how many there are
    last: str
    hooks: tuple[str, ...]
    hooks_of: Callable[[dict[str, Any]], tuple[Any, ...]]


class Children(dict[str, Any]):
    """The child modules of a shadow. Each is replaced with its shadow when it is first read."""

    __slots__ = ("shadows",)

    shadows: Shadows

    def __getitem__(self, name: str) -> Any:
        child = dict.__getitem__(self, name)
        shadows = self.shadows
        place = shadows.places.get(id(child))
        if place is not None:
            shadow = place.shadow or shadows.make(place)
        elif id(child) in shadows.by_shadow:
            return child
        else:
            shadow = shadows.of(child)
        dict.__setitem__(self, name, shadow)
        return shadow

    def __iter__(self) -> Any:
        return dict.__iter__(self)  # so that `dict(children)` and `{**children}` read each item

    def get(self, name: str, default: Any = None) -> Any:
        """The shadow of that name."""
        return self[name] if name in self else default  # noqa: SIM401 - that is this

    def values(self) -> Any:
        """All shadows."""
        self._read_all()
        return dict.values(self)

    def items(self) -> Any:
        """All names and shadows."""
        self._read_all()
        return dict.items(self)

    def pop(self, name: str, *default: Any) -> Any:
        """Remove a shadow."""
        self._read_all()
        return dict.pop(self, name, *default)

    def popitem(self) -> Any:
        """Remove the last shadow."""
        self._read_all()
        return dict.popitem(self)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """The shadow of that name, or a new entry."""
        self._read_all()
        return dict.setdefault(self, name, default)

    def copy(self) -> dict[str, Any]:
        """A plain dict of all shadows."""
        return dict(self.items())

    def __reduce__(self) -> Any:
        return dict, (self.copy(),)

    def _read_all(self) -> None:
        for name in [*self]:
            self[name]


class Shadows:
    """The shadows of one run, by module."""

    def __init__(
        self,
        torch: Any,
        places: ModuleTable,
        own_hooks: bool = False,
        copy_tensor: Callable[[Any], Any] | None = None,
    ) -> None:
        self.torch, self.places = torch, places
        self.by_shadow: dict[int, ModuleInfo] = {}  # identity of a shadow -> its place
        self.call: Any = None  # what handles the call of a shadow
        self.copy_tensor = copy_tensor  # None: shadows have the tensors of their modules
        self._own_hooks = own_hooks
        self._layout = layout(torch)
        self._module = torch.nn.Module
        self._atoms = atoms(torch)
        self._of_leaves = self._atoms | {tuple, list}  # which hold sizes
        self._registered = itemgetter(
            *self._layout.hooks, "_modules", "_non_persistent_buffers_set"
        )
        self._no_hooks = NoHooks()
        self._hooks = dict.fromkeys(self._layout.hooks, self._no_hooks)
        self._of_any_leaf = {
            **self._hooks, "_modules": self._no_hooks, "_buffers": self._no_hooks,
            "_non_persistent_buffers_set": NoNames(),
        }  # fmt: skip
        self._memo: dict[int, Any] = {}  # by identity of what was copied
        self._kept: list[Any] = []
        self._holds: dict[int, bool] = {}
        self._advised = "transformers.modeling_utils" in sys.modules
        self._script = torch.jit.ScriptModule
        self._compiled: Any = getattr(
            sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", ()
        )

    def close(self) -> None:
        """Let go of all shadows; one that somebody kept runs as a plain module."""
        for place in self.by_shadow.values():
            place.held.pop(SEAM, None)
            place.shadow, place.held = None, place.module.__dict__
        self.by_shadow.clear()
        self._memo.clear()
        self._kept.clear()
        self.call = self.copy_tensor = None

    def of(self, child: Any) -> Any:
        """The shadow of a module; anything else as it is."""
        place = self.places.get(id(child))
        if place is not None:
            return place.shadow or self.make(place)
        if id(child) in self.by_shadow or not isinstance(child, self._module):
            return child
        return self.convert(child)

    def make(self, place: ModuleInfo) -> Any:
        """Make the shadow of a module of the model."""
        module = place.module
        if place.leaf is not None and (leaf := self._make_leaf(place)) is not None:
            return leaf
        if isinstance(module, self._script):
            return self._make_scripted(place)
        held = module.__dict__
        try:
            shadow = _blank(place.kind, module)
        except TypeError:  # of a type that only its own code can make: runs as it is
            shadow = place.shadow = module
            return shadow
        place.shadow = shadow
        new = place.held = held.copy()
        object.__setattr__(shadow, "__dict__", new)
        self.by_shadow[id(shadow)] = place
        self._fill(new, held, self._atoms if place.leaf is None else self._of_leaves)
        new[SEAM] = MethodType(self.call, place)
        if self._advised and hasattr(place.kind, ADVICE):
            # it looks at the ends of a text, only to warn of padding in it
            new[ADVICE] = _no_advice
        if self._compiled and isinstance(module, self._compiled):
            new["forward"] = partial(_call_original, shadow)  # counted as it is written
        return shadow

    def _make_leaf(self, place: ModuleInfo) -> Any:
        """As `make`, in a third of the time: leaves are many and hardly ever entered.

        None for one that has other attributes than those of its class, or something registered.
        """
        held, kind = place.module.__dict__, place.kind
        if self._own_hooks or self.copy_tensor is not None:
            return None
        try:
            if any(self._registered(held)):
                return None
            params, buffers = held["_parameters"], held["_buffers"]
        except KeyError:  # made by another version of PyTorch
            return None
        if ATTRIBUTES.get(kind) != len(held):
            own = islice(held.values(), self._layout.size, None)
            if not self._of_leaves.issuperset(map(type, own)) or slots(kind):
                return None
            ATTRIBUTES[kind] = len(held)
        shadow = place.shadow = object.__new__(kind)
        new = place.held = held.copy()
        new.update(self._of_any_leaf)
        new["_parameters"] = params.copy()
        if buffers:
            new["_buffers"] = buffers.copy()
        new[SEAM] = MethodType(self.call, place)
        object.__setattr__(shadow, "__dict__", new)
        self.by_shadow[id(shadow)] = place
        return shadow

    def _make_scripted(self, place: ModuleInfo) -> Any:
        """Make the shadow of a TorchScript module; its children are run by its interpreter."""
        held = place.module.__dict__
        shadow = place.shadow = scripted_copy(self.torch, place.module, self.copy_tensor)
        self.by_shadow[id(shadow)] = place
        place.held = shadow.__dict__
        for name in self._layout.hooks:
            if name in held:
                place.held[name] = self.convert(held[name])
        place.held[SEAM] = MethodType(self.call, place)
        return shadow

    def _fill(self, new: dict[str, Any], held: dict[str, Any], atoms: frozenset[type]) -> None:
        """Replace what a module's attributes share with the module."""
        layout, copies = self._layout, self.copy_tensor is not None
        rest: Any = held.items()
        if len(held) >= layout.size and next(islice(held, layout.size - 1, None)) == layout.last:
            for name in ("_parameters", "_buffers"):
                new[name] = self.convert(held[name]) if copies else held[name].copy()
            new["_non_persistent_buffers_set"] = held["_non_persistent_buffers_set"].copy()
            new["_modules"] = self._children(held["_modules"])
            if self._own_hooks or any(layout.hooks_of(held)):
                for name in layout.hooks:
                    new[name] = self.convert(held[name])
            else:
                new.update(self._hooks)
            own = islice(held.values(), layout.size, None)
            if not copies and atoms.issuperset(map(type, own)):
                return
            rest = islice(held.items(), layout.size, None)
        for name, value in rest:
            if copies or type(value) not in atoms:
                if name == "_modules" and isinstance(value, dict):
                    new[name] = self._children(value)
                else:
                    new[name] = self.convert(value)

    def _children(self, modules: dict[str, Any]) -> dict[str, Any]:
        """Shadows of child modules; those that are no leaves are made when they are read."""
        if not modules:
            return modules.copy()
        place_of, found, later = self.places.get, dict.copy(modules), False
        for name, child in found.items():
            place = place_of(id(child))
            if place is None:
                later = later or child is not None
                continue
            shadow = place.shadow
            if shadow is None and place.leaf is not None:
                shadow = self._make_leaf(place)
            if shadow is None:
                later = True
            else:
                found[name] = shadow
        if not later:
            return found
        children = Children(found)
        children.shadows = self
        return children

    # Attributes that refer to modules

    def convert(self, value: Any) -> Any:
        """A copy of a container, with shadows in place of modules; anything else as it is."""
        kind = type(value)
        if kind in self._atoms:
            if self.copy_tensor is not None and isinstance(value, self.torch.Tensor):
                return self.copy_tensor(value)
            return value
        found = self._memo.get(id(value))
        if found is not None:
            return found
        if isinstance(value, self._module):
            return self._module_of(value)
        if kind is MethodType:
            owner = self.convert(value.__self__)
            return value if owner is value.__self__ else MethodType(value.__func__, owner)
        if issubclass(kind, (list, dict, set, tuple, frozenset)):
            return self._container(value, kind)
        if not self._reaches_module(value, DEEPEST):
            return value
        if kind is FunctionType:
            return self._function(value)
        if isinstance(value, partial):
            words = {name: self.convert(each) for name, each in value.keywords.items()}
            args = [self.convert(each) for each in value.args]
            return type(value)(self.convert(value.func), *args, **words)
        return self._object(value)

    def _module_of(self, module: Any) -> Any:
        place = self.places.get(id(module))
        if place is not None:
            return place.shadow or self.make(place)
        if id(module) in self.by_shadow:
            return module
        try:  # one that is not registered
            shadow = _blank(type(module), module)
        except TypeError:
            return module
        self._keep(module, shadow)
        new = module.__dict__.copy()
        object.__setattr__(shadow, "__dict__", new)
        self._fill(new, module.__dict__, self._atoms)
        return shadow

    def _container(self, value: Any, kind: Any) -> Any:
        new: Any
        held = dict.values(value) if isinstance(value, dict) else value
        if len(value) > MOST and kind in COPIED and not _any_module(held, self._module):
            return self._keep(value, value.copy())  # of words or files, not of modules
        plain = self._atoms.issuperset(map(type, held))
        if isinstance(value, dict) and not self._atoms.issuperset(map(type, value)):
            plain = False
        if plain and self.copy_tensor is None:
            if kind in (tuple, frozenset):
                return value
            return self._keep(value, value.copy()) if kind in COPIED else value
        if isinstance(value, (tuple, frozenset)):
            if not self._reaches_module(value, DEEPEST) and self.copy_tensor is None:
                return value
            each = [self.convert(one) for one in value]
            return kind(*each) if hasattr(value, "_fields") else kind(each)
        if kind not in COPIED and not self._reaches_module(value, DEEPEST):
            return value
        try:
            new = self._keep(value, value.copy())
        except Exception:  # a container of somebody's own making
            return value
        if isinstance(new, dict):
            pairs = [(self.convert(key), self.convert(each)) for key, each in value.items()]
            new.clear()
            new.update(pairs)
        elif isinstance(new, list):
            new[:] = [self.convert(one) for one in value]
        else:
            new.clear()
            new.update([self.convert(one) for one in value])
        return new

    def _function(self, function: Any) -> Any:
        """A function with shadows in place of the modules that it has in its closure."""
        before = function.__closure__ or ()
        # what refers to no module is the function's own business, such as a list of results
        cells = tuple([
            CellType() if _filled(cell) and self._reaches_module(cell.cell_contents, DEEPEST)
            else cell
            for cell in before
        ])  # fmt: skip
        new = FunctionType(function.__code__, function.__globals__, function.__name__, None, cells)
        self._keep(function, new)  # first, because it may refer to itself
        for cell, own in zip(cells, before, strict=True):
            if cell is not own:
                cell.cell_contents = self.convert(own.cell_contents)
        if function.__defaults__:
            new.__defaults__ = tuple(map(self.convert, function.__defaults__))
        if function.__kwdefaults__:
            new.__kwdefaults__ = self.convert(function.__kwdefaults__)
        new.__dict__.update(function.__dict__)
        new.__qualname__, new.__module__ = function.__qualname__, function.__module__
        return new

    def _object(self, value: Any) -> Any:
        """An object that holds modules of the model, with their shadows instead."""
        try:
            new = object.__new__(type(value))
        except TypeError:
            return value
        self._keep(value, new)
        held = {name: self.convert(each) for name, each in vars(value).items()}
        object.__setattr__(new, "__dict__", held)
        return new

    def _keep(self, value: Any, new: Any) -> Any:
        self._kept.append(value)  # so that no other comes to have its identity
        self._memo[id(value)] = new
        return new

    def _reaches_module(self, value: Any, depth: int) -> bool:
        """Whether a value refers to a module, in as many steps at most."""
        kind = type(value)
        if kind in self._atoms:
            return False
        if isinstance(value, self._module):
            return True
        found = self._holds.get(id(value))
        if found is not None or depth == 0:
            return bool(found)
        self._holds[id(value)] = False
        self._kept.append(value)
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
            inside = [*value]
        elif _is_plain_object(value):
            inside = [*vars(value).values()]
        reaches = any(self._reaches_module(each, depth - 1) for each in inside)
        self._holds[id(value)] = reaches
        return reaches


def _blank(kind: Any, module: Any) -> Any:
    """An object of a class of modules without attributes, but for those in its slots."""
    shadow = object.__new__(kind)
    for name in slots(kind):
        try:
            value = object.__getattribute__(module, name)
        except AttributeError:
            continue
        object.__setattr__(shadow, name, value)
    return shadow


@cache
def slots(kind: Any) -> tuple[str, ...]:
    """Names of the slots of a class."""
    found: list[str] = []
    for base in kind.__mro__:
        own = base.__dict__.get("__slots__", ())
        found += [own] if isinstance(own, str) else own
    return tuple([name for name in found if name not in ("__dict__", "__weakref__")])


@cache
def atoms(torch: Any) -> frozenset[type]:
    """Types of values that refer to no module and are not written to."""
    own = (torch.Tensor, torch.nn.Parameter, torch.dtype, torch.device, torch.Size)
    return frozenset((*ATOMS, *own, torch.memory_format, torch.layout, torch.Generator))


@cache
def layout(torch: Any) -> Layout:
    """The attributes that every module of this PyTorch has."""
    held = vars(torch.nn.Module())
    hooks = tuple([name for name, value in held.items() if type(value) is OrderedDict])
    return Layout(len(held), [*held][-1], hooks, itemgetter(*hooks))


def _any_module(values: Any, module: Any) -> bool:
    return any(issubclass(kind, module) for kind in {*map(type, values)})


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _is_plain_object(value: Any) -> bool:
    """Whether an object keeps all it has in attributes, and was not made by C code."""
    kind: Any = type(value)
    return (
        kind.__new__ is object.__new__
        and not isinstance(value, type)
        and hasattr(value, "__dict__")
        and not slots(kind)
    )


def _no_advice(*_: Any, **__: Any) -> None:
    """Nothing is warned of."""


def _call_original(shadow: Any, *args: Any, **kwargs: Any) -> Any:
    return shadow._modules["_orig_mod"](*args, **kwargs)
