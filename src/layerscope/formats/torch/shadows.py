"""Shadow modules: a capture runs these, so that nothing is written to the user's modules.

A shadow has the class of its module and a copy of its attributes: the same parameters and buffers,
copies of its containers, and shadows instead of the modules that any of these refer to. What a
forward writes stays in the shadow. Another thread that runs the module itself sees nothing of it.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import islice
from operator import itemgetter
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakMethod

from layerscope.formats.torch.caches import FAST_PATH_ATTRS
from layerscope.formats.torch.module_table import ModuleInfo, ModuleTable
from layerscope.formats.torch.scripted import scripted_copy
from layerscope.formats.torch.shadow_attributes import AttributeCopies, atoms, slots
from layerscope.formats.torch.torch_types import Arg, Attrs, Result, Torch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

SEAM = "_compiled_call_impl"  # where PyTorch looks for a compiled forward, before it runs one
ENDED = "a module that a forward stored during a capture takes no hooks; use the model's own"
ADVICE = "warn_if_padding_and_no_attention_mask"


class Rerun(BaseException):
    """The forward needs something that a run leaves out for speed: it is run again with it.

    Not an Exception, because models catch those.
    """

    def __init__(self, option: str) -> None:
        super().__init__(option)
        self.option = option


class NoHooks(OrderedDict[Any, Any]):
    """The hook table of all shadows without hooks. It stays empty."""

    ended = False  # whether the capture is over

    def __setitem__(self, key: object, value: object) -> None:
        if self.ended:
            raise RuntimeError(ENDED)
        raise Rerun("own_hooks")


class NoNames(set[str]):
    """The names of non-persistent buffers of all shadows with a fast path. It stays empty."""

    ended = False

    def add(self, name: str) -> None:
        """Run the forward again, on shadows with a set of their own."""
        if self.ended:
            raise RuntimeError(ENDED)
        raise Rerun("own_hooks")


class BaseAttrs(NamedTuple):
    """The attributes that `nn.Module.__init__` sets, the first ones of every module."""

    size: int  # how many there are
    last: str
    hooks: tuple[str, ...]
    hooks_of: Callable[[Attrs], tuple[Any, ...]]


class ShadowChildren(dict[str, Any]):
    """The child modules of a shadow. Each is replaced with its shadow when it is first read."""

    __slots__ = ("shadows",)

    shadows: Shadows

    def __getitem__(self, name: str) -> Any:
        child = dict.__getitem__(self, name)
        shadows = self.shadows
        if id(child) in shadows.by_shadow:
            return child
        info = shadows.modules.get(id(child))
        shadow = shadows.of(child) if info is None else info.shadow or shadows.make(info)
        dict.__setitem__(self, name, shadow)
        return shadow

    def __iter__(self) -> Iterator[str]:
        return dict.__iter__(self)  # so that `dict(children)` and `{**children}` read each item

    def get(self, name: str, default: object = None) -> Any:
        """The shadow of that name."""
        return self[name] if name in self else default  # noqa: SIM401

    def values(self) -> Any:
        """All shadows."""
        self._read_all()
        return dict.values(self)

    def items(self) -> Any:
        """All names and shadows."""
        self._read_all()
        return dict.items(self)

    def pop(self, name: str, *default: object) -> Any:
        """Remove a shadow."""
        self._read_all()
        return dict.pop(self, name, *default)

    def popitem(self) -> tuple[str, Any]:
        """Remove the last shadow."""
        self._read_all()
        return dict.popitem(self)

    def setdefault(self, name: str, default: object = None) -> Any:
        """The shadow of that name, or a new entry."""
        self._read_all()
        return dict.setdefault(self, name, default)

    def copy(self) -> dict[str, Any]:
        """A plain dict of all shadows."""
        return dict(self.items())

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self.copy(),)

    def _read_all(self) -> None:
        for name in [*self]:
            self[name]


class Shadows:
    """The shadows of one run, by module."""

    def __init__(
        self,
        torch: Torch,
        modules: ModuleTable,
        own_hooks: bool = False,
        copy_tensor: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self.torch = torch
        self.modules: Mapping[int, ModuleInfo] = modules
        self.by_shadow: dict[int, ModuleInfo] = {}  # by identity of the shadow
        self.call: Any = None  # handles the call of a shadow, given its ModuleInfo
        self.copy_tensor = copy_tensor  # None: shadows have the tensors of their modules
        self._own_hooks = own_hooks
        self._base = base_attrs(torch)
        nn = torch.nn
        self._module, self._sequential, self._identity = nn.Module, nn.Sequential, nn.Identity
        self._atoms = atoms(torch)
        self._plain_types = self._atoms | {tuple, list}  # of attributes with a fast path: sizes
        self._registered = itemgetter(*self._base.hooks, "_modules", "_non_persistent_buffers_set")
        self.no_hooks = NoHooks()
        self.no_names = NoNames()
        self._hooks = dict.fromkeys(self._base.hooks, self.no_hooks)
        self._shared_attrs = {
            **self._hooks, "_modules": self.no_hooks, "_buffers": self.no_hooks,
            "_parameters": self.no_hooks, "_non_persistent_buffers_set": self.no_names,
        }  # fmt: skip
        self._attributes = AttributeCopies(torch, WeakMethod(self.shadow_of), copy_tensor)
        self._advised = "transformers.modeling_utils" in sys.modules
        self._script = torch.jit.ScriptModule
        self._compiled: Any = getattr(
            sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", ()
        )

    def close(self) -> None:
        """Free all shadows; one that the forward stored somewhere runs as a plain module."""
        for info in self.by_shadow.values():
            info.attrs.pop(SEAM, None)
        self.by_shadow.clear()
        self.modules = {}  # each of them refers to its shadow
        self.no_hooks.ended = self.no_names.ended = True
        self._attributes.close()
        self.call = self.copy_tensor = None

    def of(self, child: object) -> Any:
        """The shadow of a module; anything else as it is."""
        info = self.modules.get(id(child))
        if info is not None:
            return info.shadow or self.make(info)
        if id(child) in self.by_shadow or not isinstance(child, self._module) or self.call is None:
            return child
        return self._attributes.copy(child)

    def make(self, info: ModuleInfo) -> Any:
        """Make the shadow of a module of the model."""
        module = info.module
        if info.fast_path is not None or info.cls is self._identity:
            plain = self._make_plain(info)
            if plain is not None:
                return plain
        if isinstance(module, self._script):
            return self._make_scripted(info)
        attrs = module.__dict__
        try:
            shadow = _blank(info.cls, module)
        except TypeError:  # of a class that `object.__new__` refuses: runs as it is
            shadow = info.shadow = module
            return shadow
        info.shadow = shadow
        new = info.attrs = attrs.copy()
        object.__setattr__(shadow, "__dict__", new)
        self.by_shadow[id(shadow)] = info
        own_types = self._atoms if info.fast_path is None else self._plain_types
        # most of the modules in a Sequential are captured without a shadow
        self._fill(new, attrs, own_types, later=isinstance(module, self._sequential))
        new[SEAM] = MethodType(self.call, info)
        if self._advised and hasattr(info.cls, ADVICE):
            # it reads the first and last token, only to warn of padding
            new[ADVICE] = _no_advice
        if self._compiled and isinstance(module, self._compiled):
            new["forward"] = partial(_call_original, shadow)  # the uncompiled forward
        return shadow

    def _make_plain(self, info: ModuleInfo) -> Any:
        """As `make` for identities and classes with a fast path, in a third of the time.

        None for one that has other attributes than its class, or anything registered.
        """
        attrs, cls = info.module.__dict__, info.cls
        if self._own_hooks or self.copy_tensor is not None:
            return None
        try:
            if any(self._registered(attrs)):
                return None
            params, buffers = attrs["_parameters"], attrs["_buffers"]
        except KeyError:  # unpickled from another version of PyTorch
            return None
        if FAST_PATH_ATTRS.get(cls) != len(attrs):
            own = islice(attrs.values(), self._base.size, None)
            if not self._plain_types.issuperset(map(type, own)) or slots(cls):
                return None
            FAST_PATH_ATTRS[cls] = len(attrs)
        shadow = info.shadow = object.__new__(cls)
        new = info.attrs = attrs | self._shared_attrs
        if params:
            new["_parameters"] = params.copy()
        if buffers:
            new["_buffers"] = buffers.copy()
        new[SEAM] = MethodType(self.call, info)
        object.__setattr__(shadow, "__dict__", new)
        self.by_shadow[id(shadow)] = info
        return shadow

    def _make_scripted(self, info: ModuleInfo) -> Any:
        """Make the shadow of a TorchScript module; its children are run by its interpreter."""
        attrs = info.module.__dict__
        shadow = info.shadow = scripted_copy(self.torch, info.module, self.copy_tensor)
        self.by_shadow[id(shadow)] = info
        info.attrs = shadow.__dict__
        for name in self._base.hooks:
            if name in attrs:
                info.attrs[name] = self._attributes.copy(attrs[name])
        info.attrs[SEAM] = MethodType(self.call, info)
        return shadow

    def _fill(self, new: Attrs, attrs: Attrs, atoms: frozenset[type], *, later: bool) -> None:
        """Replace the attributes of a shadow that must not be shared with its module.

        With `later`, shadows of its children are made when they are first read.
        """
        base, copies = self._base, self.copy_tensor is not None
        rest: Any = attrs.items()
        if len(attrs) >= base.size and next(islice(attrs, base.size - 1, None)) == base.last:
            if self._own_hooks or any(base.hooks_of(attrs)):
                for name in base.hooks:
                    new[name] = self._attributes.copy(attrs[name])
            else:
                new.update(self._hooks)
            for name in ("_parameters", "_buffers"):
                new[name] = self._attributes.copy(attrs[name]) if copies else attrs[name].copy()
            new["_non_persistent_buffers_set"] = attrs["_non_persistent_buffers_set"].copy()
            new["_modules"] = self._children(attrs["_modules"], later)
            own = islice(attrs.values(), base.size, None)
            if not copies and atoms.issuperset(map(type, own)):
                return
            rest = islice(attrs.items(), base.size, None)
        for name, value in rest:
            if copies or type(value) not in atoms:
                if name == "_modules" and isinstance(value, dict):
                    new[name] = self._children(value, later)
                else:
                    new[name] = self._attributes.copy(value)

    def _children(self, modules: dict[str, Any], later: bool) -> dict[str, Any]:
        """Shadows of child modules; of those without a fast path, made when they are first read."""
        if not modules:
            return modules.copy()
        info_of, found = self.modules.get, dict.copy(modules)
        for name, child in found.items() if not later else ():
            info = info_of(id(child))
            if info is None:
                later = later or child is not None
                continue
            shadow = info.shadow
            if shadow is None and (info.fast_path is not None or info.cls is self._identity):
                shadow = self._make_plain(info)
            if shadow is None:
                later = True
            else:
                found[name] = shadow
        if not later:
            return found
        children = ShadowChildren(found)
        children.shadows = self
        return children

    def shadow_of(self, module: Module) -> Any:
        """The shadow of any module, also of one that is not registered in the model."""
        info = self.modules.get(id(module))
        if info is not None:
            return info.shadow or self.make(info)
        if id(module) in self.by_shadow:
            return module
        try:
            shadow = _blank(type(module), module)
        except TypeError:
            return module
        self._attributes.keep(module, shadow)
        new = module.__dict__.copy()
        object.__setattr__(shadow, "__dict__", new)
        self._fill(new, module.__dict__, self._atoms, later=False)
        return shadow


def _blank(cls: Any, module: Module) -> Any:
    """An object of a class of modules without attributes, but for those in its slots."""
    shadow = object.__new__(cls)
    for name in slots(cls):
        try:
            value = object.__getattribute__(module, name)
        except AttributeError:
            continue
        object.__setattr__(shadow, name, value)
    return shadow


@cache
def base_attrs(torch: Torch) -> BaseAttrs:
    """The attributes that every module of this PyTorch has."""
    attrs = vars(torch.nn.Module())
    hooks = tuple([name for name, value in attrs.items() if type(value) is OrderedDict])
    return BaseAttrs(len(attrs), [*attrs][-1], hooks, itemgetter(*hooks))


def _no_advice(*_: object, **__: object) -> None:
    """Warn of nothing."""


def _call_original(shadow: Module, *args: Arg, **kwargs: Arg) -> Result:
    return shadow._modules["_orig_mod"](*args, **kwargs)
