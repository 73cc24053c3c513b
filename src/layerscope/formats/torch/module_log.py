"""Calls of modules in the order of a forward, and what a table of them says about each module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from layerscope.errors import UsageError
from layerscope.formats.torch.dtypes import name_of
from layerscope.formats.torch.fast_paths import fast_paths
from layerscope.formats.torch.lazy import is_lazy
from layerscope.formats.torch.module_table import ModuleInfo, ModuleTable, class_name
from layerscope.formats.torch.packed import Packs
from layerscope.formats.torch.torch_types import Arg, Torch
from layerscope.graph.types import Graph, Node, Param, Role, Shape, Tensor

if TYPE_CHECKING:
    from torch.nn import Module

NO_INPUT = "no input is given, so no operation is counted: parameters only"


class CallRecord(Struct, gc=False):
    """A call of a module while the forward runs; its nodes are from `start` to before `end`."""

    info: ModuleInfo
    start: int
    end: int
    input: Shape = ()
    output: Shape = ()


class LoggedCall(Struct, frozen=True, gc=False):
    """A call of a module: its nodes are those of the graph from `start` to before `end`."""

    path: str
    start: int
    end: int
    input: Shape = ()  # of its first positional argument
    output: Shape = ()  # of its first result, of the last one in a dict


class ModuleLog(Struct):
    """The calls of one forward, and parameters and attributes of the modules.

    Modules with a fast path have no call here: each is one node that names its module. Attributes
    and shapes are recorded on request, because a capture takes only microseconds per module.
    """

    with_shapes: bool = False  # record the shapes of parameters
    with_windows: bool = False  # record `kernel_size` and `groups` of modules
    calls: tuple[LoggedCall, ...] = ()
    arrays: tuple[str, ...] = ()  # paths of parameters and buffers, in the order of declaration
    ties: Mapping[str, str] = {}  # path -> path that it is stored under, if that is another
    shapes: Mapping[str, Shape] = {}  # of parameters by their path
    kernels: Mapping[str, int | tuple[Any, ...]] = {}  # `kernel_size` of modules by path
    groups: Mapping[str, int] = {}  # `groups` of modules by path

    def fill(self, modules: ModuleTable, records: Iterable[CallRecord]) -> None:
        """Set everything after a forward; an earlier forward is overwritten."""
        self.calls = tuple(
            [LoggedCall(r.info.path, r.start, r.end, r.input, r.output) for r in records]
        )
        self.arrays, self.ties = modules.array_paths()
        if self.with_shapes:
            arrays = modules.arrays
            stored = [(path, self.ties.get(path, path)) for path in self.arrays]
            self.shapes = {path: tuple(arrays[first].shape) for path, first in stored}
        if not self.with_windows:
            return
        self.kernels = {
            path: kernel if isinstance(kernel, int) else tuple(kernel)
            for path, kernel in _attributes(modules, "kernel_size")
            if isinstance(kernel, (int, list, tuple))
        }
        self.groups = {
            path: groups
            for path, groups in _attributes(modules, "groups")
            if isinstance(groups, int)
        }


def _attributes(modules: ModuleTable, name: str) -> Iterator[tuple[str, Any]]:
    """The value of one attribute by module path, properties of the class included."""
    on_class = {cls: hasattr(cls, name) for cls in {info.cls for info in modules.values()}}
    for info in modules.values():
        if name in info.attrs:
            yield info.path, info.attrs[name]
        elif on_class[info.cls]:
            value = None
            with suppress(Exception):  # a property may need a state that the module does not have
                value = getattr(info.module, name)
            yield info.path, value


def first_shape(value: Arg, torch: Torch) -> Shape:
    """Shape of the first tensor in nested containers, of the last one in a dict; () if none."""
    first = value[0] if type(value) is tuple and value else value
    if type(first) is torch.Tensor:  # most calls
        return tuple(first.shape)
    if isinstance(value, dict) and value:
        value = [*value.values()][-1]
    while not isinstance(value, torch.Tensor):
        if isinstance(value, dict):
            value = [*value.values()]
        if not isinstance(value, (list, tuple)) or not value:
            return ()
        value = value[0]
    return tuple(value.shape)


def declared_graph(torch: Torch, model: Module, log: ModuleLog) -> Graph:
    """The modules and parameters of a model that is not run; one node per module with arrays."""
    modules = ModuleTable(torch, model, fast_paths(torch))
    table, name = modules.params, type(model).__name__
    if is_lazy(torch, table.tensors):
        raise UsageError(
            f"{name}: lazy modules have no parameters before a forward; give input_size or "
            "input_data"
        )
    Packs(torch, modules, table, nullcontext).find()
    log.fill(modules, [CallRecord(info, 0, 0) for info in modules.values()])
    owners: dict[str, list[Param]] = {}
    for path, array in table.tensors.items():
        module, _, own = path.rpartition(".")
        role: Role = "statistic" if id(array) in table.buffers else _role(own)
        param = Param(own, tuple(array.shape), role, name_of(array.dtype), path)
        owners.setdefault(module, []).append(param)
    nodes = []
    for path, params in (owners or {"": []}).items():
        node = path or _unused_name(name, owners)
        scope = tuple(path.split(".")) if path else ()
        nodes.append(Node(node, "weights", (), (node,), None, tuple(params), scope, note=NO_INPUT))
    return Graph(
        name=name,
        inputs=(Tensor(_unused_name("input", owners), ()),),
        nodes=tuple(nodes),
        outputs=(),
        modules={info.path: info.cls.__name__ for info in modules.values()},
        kinds={info.path: class_name(info.cls) for info in modules.values()},
        notes=(NO_INPUT,),
        frozen=frozenset(table.frozen),
        all_params=True,
    )


def _unused_name(name: str, names: Mapping[str, object]) -> str:
    """A name that is not in use."""
    while name in names:
        name += "_"
    return name


def _role(own: str) -> Role:
    return "bias" if own.endswith("bias") else "weight"
