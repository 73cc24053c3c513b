"""Rows of a summary: one per call of a module, in the order of the calls, as in torchinfo."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from layerscope.analysis.costs import storage_of
from layerscope.formats.torch.module_log import LoggedCall, ModuleLog
from layerscope.graph.types import Shape
from layerscope.report.types import Layer, Report


class ModuleRow(Struct, frozen=True):
    """One call of a module, or a container whose modules are called without it.

    Fields have the names that they have in torchinfo's `summary_list`.
    """

    class_name: str
    var_name: str
    path: str
    depth: int
    depth_index: int  # counts the rows of this depth from 1
    executed: bool  # False for a container that is not called itself
    is_leaf_layer: bool
    is_recursive: bool  # the module has an earlier row
    input_size: list[int]
    output_size: list[int]
    kernel_size: int | list[int] | None  # recorded if it is printed; so are the groups
    groups: int | None
    num_params: int  # of the module with all modules in it, tied ones once
    trainable_params: int
    params: tuple[tuple[str, int, Shape | None], ...]  # name, elements, shape if it is recorded
    own: tuple[Layer, ...] = ()  # operators of the call that are in no row below
    all: tuple[Layer, ...] = ()  # and those of the rows below
    own_params: int = 0  # parameters that no row below has

    @property
    def trainable(self) -> str:
        """True, False or Partial; -- without parameters."""
        if not self.num_params:
            return "--"
        if self.trainable_params in (0, self.num_params):
            return str(bool(self.trainable_params))
        return "Partial"


class Calls(Struct):
    """Calls in order, each with the layers that are in it and in no call inside it."""

    calls: list[LoggedCall] = []
    layers: list[list[Layer]] = []

    def add(self, call: LoggedCall) -> int:
        """Add a call; its index."""
        self.calls.append(call)
        self.layers.append([])
        return len(self.calls) - 1


def module_rows(report: Report, log: ModuleLog) -> tuple[ModuleRow, ...]:
    """The rows of a report, whose graph was captured with this log."""
    found = _calls(report.layers, log.calls)
    details = _Modules(report, log)
    rows = []
    called = {call.path for call in found.calls}
    seen: set[str] = set()
    around: list[str] = []  # paths of the rows above, by depth - 1
    for call, layers in zip(found.calls, found.layers, strict=True):
        parts = call.path.split(".") if call.path else []
        for depth in range(1, len(parts)):
            outer = ".".join(parts[:depth])
            if around[depth - 1 : depth] != [outer]:
                around[depth - 1 :] = [outer]
                rows.append(details.row(LoggedCall(outer, 0, 0), (), outer in called, False))
                called.add(outer)
        if parts:
            around[len(parts) - 1 :] = [call.path]
        rows.append(details.row(call, tuple(layers), call.path in seen, True))
        seen.add(call.path)
    return tuple(_summed(rows, details))


def _calls(layers: tuple[Layer, ...], records: tuple[LoggedCall, ...]) -> Calls:
    """All calls in the order in which they start; a layer of another module is a call itself."""
    found = Calls()
    running: list[int] = []  # indices of calls that have not returned, outermost first
    waiting = iter(records)
    record = next(waiting, None)
    for at in range(len(layers) + 1):
        while record is not None and record.start <= at:
            _end_calls(running, found, at)
            running.append(found.add(record))
            record = next(waiting, None)
        _end_calls(running, found, at)
        if at == len(layers):
            break
        layer, path = layers[at], layers[at].node.module
        if path and not (running and found.calls[running[-1]].path == path):
            shapes = [t.shape or () for t in (*layer.inputs[:1], *layer.outputs[:1])]
            index = found.add(LoggedCall(path, at, at + 1, shapes[0], shapes[-1]))
            found.layers[index].append(layer)
        elif running:
            found.layers[running[-1]].append(layer)
    return found


def _end_calls(running: list[int], found: Calls, at: int) -> None:
    """End the calls that returned before this layer."""
    while running and found.calls[running[-1]].end <= at:
        running.pop()


class _Modules:
    """What the rows of a module say about it, by path."""

    def __init__(self, report: Report, log: ModuleLog) -> None:
        self.log, self.graph = log, report.graph
        self.parents = {path.rpartition(".")[0] for path in report.graph.modules if path}
        self.elements = _elements(report)
        self.params: dict[str, dict[str, str]] = {}  # module path -> storage -> path of the array
        # packed arrays of quantized modules are found while the forward runs, so not in the log
        for name in dict.fromkeys((*log.arrays, *self.elements)):
            storage = log.ties.get(name, name)
            if storage in self.elements:
                parts = name.split(".")
                for end in range(len(parts)):
                    inside = self.params.setdefault(".".join(parts[:end]), {})
                    inside.setdefault(storage, name)

    def row(
        self, call: LoggedCall, own: tuple[Layer, ...], recursive: bool, executed: bool
    ) -> ModuleRow:
        path, log = call.path, self.log
        kernel = log.kernels.get(path)
        arrays, elements, frozen = self.params.get(path, {}), self.elements, self.graph.frozen
        start = len(path) + 1 if path else 0
        return ModuleRow(
            class_name=self.graph.kinds.get(path, "").rpartition(".")[2],
            var_name=path.rpartition(".")[2] if path else self.graph.name,
            path=path,
            depth=path.count(".") + 1 if path else 0,
            depth_index=0,
            executed=executed,
            is_leaf_layer=path not in self.parents,
            is_recursive=recursive,
            input_size=list(call.input),
            output_size=list(call.output),
            kernel_size=list(kernel) if isinstance(kernel, tuple) else kernel,
            groups=log.groups.get(path),
            num_params=sum([elements[each] for each in arrays]),
            trainable_params=sum([elements[each] for each in arrays if each not in frozen]),
            params=tuple(
                (name[start:], elements[storage], log.shapes.get(name))
                for storage, name in arrays.items()
            ),
            own=own,
        )


def _elements(report: Report) -> dict[str, int]:
    """Elements of every parameter by its storage; buffers and constants are left out."""
    graph = report.graph
    found = {
        storage_of(node, param, node.ties): param.elements
        for node in graph.nodes
        for param in report.costs[node.name].params
        if param.learnable
    }
    for param in (*graph.params, *graph.unused):
        if param.learnable:
            found[param.storage or param.name] = param.elements
    return found


def _summed(rows: list[ModuleRow], details: _Modules) -> Iterator[ModuleRow]:
    """The rows with their index, what the rows below add up to, and the parameters of no other."""
    below: dict[str, set[str]] = {}  # module path -> storages of the modules in it that have rows
    for path in {row.path for row in rows if row.path}:
        below.setdefault(path.rpartition(".")[0], set()).update(details.params.get(path, ()))
    counts: dict[int, int] = {}
    for at, row in enumerate(rows):
        every = list(row.own)
        for under in range(at + 1, len(rows)):
            if rows[under].depth <= row.depth:
                break
            every += rows[under].own
        own = details.params.get(row.path, {}).keys() - below.get(row.path, set())
        own_params = sum([details.elements[each] for each in own])
        counts[row.depth] = counts.get(row.depth, 0) + 1
        yield replace(row, depth_index=counts[row.depth], all=tuple(every), own_params=own_params)
