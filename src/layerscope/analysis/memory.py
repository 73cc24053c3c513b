"""Activation memory: elements written by each node, and the peak by liveness in execution order."""

from __future__ import annotations

from itertools import accumulate

from msgspec import Struct

from layerscope.analysis.shapes import Shapes
from layerscope.graph.types import Graph, Node, Shape, Tensor
from layerscope.ops import SPECS


class Memory(Struct, frozen=True, gc=False):
    """Bytes of activations. A tensor lives from its node to its last reader; outputs to the end."""

    written: dict[str, int]  # node -> elements of new storage that it writes
    written_bytes: dict[str, int]  # of that storage, each tensor in its own dtype
    alive_bytes: tuple[int, ...]  # while each node runs, in order
    peak_bytes: int
    peak_node: str
    peak_alive: tuple[tuple[str, int], ...]  # storages alive at the peak, largest first
    complete: bool  # False if a tensor of unknown shape was left out
    in_place: bool
    # nodes that run while such a tensor is alive: their alive_bytes are lower bounds
    bounded: frozenset[str] = frozenset()


def liveness(graph: Graph, shapes: Shapes, *, in_place: bool = False) -> Memory:
    """Follow storages through the graph.

    Views share the storage of their input; with `in_place` so do ops that can run in place. They do
    so only if nothing reads the input later and it is not an input of the network.
    """
    table = _empty_table(graph, shapes)
    written, written_bytes = table.add_nodes(graph, shapes, in_place)
    alive = table.alive_bytes(len(graph.nodes))
    peak = alive.index(max(alive)) if alive else 0
    return Memory(
        written,
        written_bytes,
        tuple(alive),
        alive[peak] if alive else 0,
        graph.nodes[peak].name if alive else "",
        table.alive_at(peak),
        table.complete,
        in_place,
        frozenset() if table.complete else table.bounded_nodes(graph),
    )


class Lifetimes(Struct, frozen=True, gc=False):
    """Storages of all tensors, numbered in order of creation."""

    owner: dict[str, int]  # tensor -> number of its storage
    names: tuple[str, ...]  # of the tensor that each storage was created for
    bytes: tuple[int, ...]  # 0 if it needs no activation memory
    first: tuple[int, ...]  # index of the node that creates it
    last: tuple[int, ...]  # index of the last node that it is alive at


def lifetimes(graph: Graph, shapes: Shapes, *, in_place: bool = False) -> Lifetimes:
    """When each storage is alive: the storages that `liveness` adds up."""
    table = _empty_table(graph, shapes)
    table.add_nodes(graph, shapes, in_place)
    end = max(len(graph.nodes) - 1, 0)
    last = tuple([min(until, end) for until in table.until])
    names, sizes, first = tuple(table.names), tuple(table.size), tuple(table.born)
    return Lifetimes(table.owner, names, sizes, first, last)


def _empty_table(graph: Graph, shapes: Shapes) -> _StorageTable:
    """A table of the storages of the network's inputs."""
    inner = inner_tensors(graph)
    table = _StorageTable(shapes, inner, _last_readers(graph, bool(inner)))
    table.add_inputs(graph)
    return table


def inner_tensors(graph: Graph) -> frozenset[str]:
    """Names of values inside one operator of a file, which are not tensors of the network."""
    return frozenset([name for node in graph.nodes if node.inner for name in node.outputs])


def _last_readers(graph: Graph, has_inner: bool) -> dict[str, int]:
    """Index of the last node that reads each tensor; outputs of the network live to the end."""
    last = {name: index for index, node in enumerate(graph.nodes) for name in node.inputs}
    last.update(dict.fromkeys(graph.outputs, len(graph.nodes)))
    if has_inner:  # inputs of a step inside an operator live until that operator is done
        for node in reversed(graph.nodes):
            if node.inner:
                done = max([last.get(name, 0) for name in node.outputs])
                for name in node.inputs:
                    last[name] = max(last[name], done)
    return last


def _writes_all(op: str, in_place: bool) -> bool:
    """Whether an op writes all its outputs to new storage."""
    rule = SPECS.get(op)
    return rule is None or not (rule.view or rule.folded or (in_place and rule.in_place))


class _StorageTable:
    """Storages numbered in order of creation: name, bytes, first and last node of each."""

    __slots__ = (
        "born", "inner", "input_count", "last_readers", "names", "owner", "size", "sizes",
        "tensors", "until",
    )  # fmt: skip

    def __init__(self, shapes: Shapes, inner: frozenset[str], last_readers: dict[str, int]) -> None:
        self.tensors = shapes.tensors
        self.inner = inner
        self.last_readers = last_readers
        self.owner: dict[str, int] = {}  # tensor -> number of its storage
        self.names: list[str] = []  # of the tensor that each storage was created for
        self.size: list[int] = []
        self.born: list[int] = []
        self.until: list[int] = []
        self.input_count = 0  # storages of the network's inputs and arrays, which come first
        # elements and bytes by shape and dtype
        self.sizes: dict[tuple[Shape | None, str], tuple[int, int]] = {}

    @property
    def complete(self) -> bool:
        """Whether the shapes of all tensors are known."""
        return all(shape is not None for shape, _ in self.sizes)

    def add_inputs(self, graph: Graph) -> None:
        """Storages of the network's inputs; a cache of past tokens is counted elsewhere."""
        for tensor in graph.inputs:
            self.add(tensor.name, 0 if tensor.name in graph.cache else self.sizes_of(tensor)[1], 0)
        for param in graph.params:  # a view of a parameter needs no activation memory
            if param.name in self.last_readers:
                self.add(param.name, 0, 0)
        self.input_count = len(self.names)

    def add(self, name: str, size: int, index: int) -> None:
        """A new storage for a tensor that the node of that index writes."""
        self.owner[name] = len(self.names)
        self.names.append(name)
        self.size.append(size)
        self.born.append(index)
        self.until.append(self.last_readers.get(name, index))

    def add_nodes(
        self, graph: Graph, shapes: Shapes, in_place: bool
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Storages of all outputs; elements and bytes of new storage that each node writes."""
        written: dict[str, int] = {}
        written_bytes: dict[str, int] = {}
        ops = {node.op for node in graph.nodes}
        writes_all = {op: _writes_all(op, in_place) for op in ops}
        views = set() if self.inner else {op for op in ops if op in SPECS and SPECS[op].view}
        owner, names, until = self.owner, self.names, self.until
        add_name, add_size, add_born = names.append, self.size.append, self.born.append
        add_until = until.append
        sizes, last_readers, ends, inner = self.sizes, self.last_readers, shapes.ends, self.inner
        for index, node in enumerate(graph.nodes):
            given, results = ends[node.name]
            if node.op in views and given and len(results) == 1:  # as `add_sharing`, inlined too
                [tensor], source = results, given[0]
                now = sizes.get((tensor.shape, tensor.dtype)) or self.sizes_of(tensor)
                storage = owner.get(source.name)
                if storage is not None and self.sizes_of(source)[1] == now[1]:
                    name = tensor.name
                    owner[name] = storage
                    last = last_readers.get(name, index)
                    if last > until[storage]:
                        until[storage] = last
                    written[node.name] = written_bytes[node.name] = 0
                    continue
            if not writes_all[node.op] or (inner and node.inner):
                written[node.name], written_bytes[node.name] = self.add_sharing(node, index)
                continue
            count = count_bytes = 0
            for tensor in results:  # as `add` does, inlined for most of all tensors
                name = tensor.name
                elements, tensor_bytes = sizes.get((tensor.shape, tensor.dtype)) or self.sizes_of(
                    tensor
                )
                owner[name] = len(names)
                add_name(name)
                add_size(tensor_bytes)
                add_born(index)
                add_until(last_readers.get(name, index))
                count += elements
                count_bytes += tensor_bytes
            written[node.name] = count
            written_bytes[node.name] = count_bytes
        return written, written_bytes

    def add_sharing(self, node: Node, index: int) -> tuple[int, int]:
        """Outputs of a node that may share storage with inputs; elements and bytes of new ones."""
        written = written_bytes = 0
        for position, name in enumerate(node.outputs):
            if node.inner:
                self.add(name, 0, index)
                continue
            elements, size = self.sizes_of(self.tensors[name])
            if SPECS[node.op].folded:  # computed before the run
                self.add(name, 0, index)
                continue
            shared = self._shared(node, position, size, index)
            if shared is None:
                self.add(name, size, index)
                written += elements
                written_bytes += size
            else:
                self.owner[name] = shared
                self.until[shared] = max(self.until[shared], self.last_readers.get(name, index))
        return written, written_bytes

    def _shared(self, node: Node, position: int, size: int, index: int) -> int | None:
        """The storage of an input that an output of that many bytes shares, if any."""
        if SPECS[node.op].view:
            if position >= len(node.inputs):
                return None
            source = node.inputs[position]
            same_size = self.sizes_of(self.tensors[source])[1] == size
            return self.owner.get(source) if same_size and source not in self.inner else None
        if position:  # in place only the first output overwrites an input
            return None
        for source in node.inputs:
            storage = self.owner.get(source, -1)
            overwritable = storage >= self.input_count and self.until[storage] == index
            if overwritable and self.size[storage] == size:
                return storage
        return None

    def sizes_of(self, tensor: Tensor) -> tuple[int, int]:
        """Elements and bytes of a tensor."""
        key = (tensor.shape, tensor.dtype)
        found = self.sizes.get(key)
        if found is None:
            found = self.sizes[key] = (tensor.elements, tensor.bytes)
        return found

    def alive_bytes(self, nodes: int) -> list[int]:
        """Bytes alive while each node runs."""
        change = [0] * (nodes + 2)
        for size, first, last in zip(self.size, self.born, self.until, strict=True):
            change[first] += size
            change[last + 1] -= size
        return list(accumulate(change[:nodes]))

    def bounded_nodes(self, graph: Graph) -> frozenset[str]:
        """Names of the nodes that run while a tensor of unknown shape is alive."""
        skipped = self.inner | graph.cache
        storages = {
            storage
            for name, storage in self.owner.items()
            if name in self.tensors and self.tensors[name].shape is None and name not in skipped
        }
        count = len(graph.nodes)
        change = [0] * (count + 2)
        for storage in storages:
            change[self.born[storage]] += 1
            change[self.until[storage] + 1] -= 1
        alive = accumulate(change[:count])
        pairs = zip(graph.nodes, alive, strict=True)
        return frozenset([node.name for node, unsized in pairs if unsized])

    def alive_at(self, index: int) -> tuple[tuple[str, int], ...]:
        """Names and bytes of the storages alive while one node runs, largest first."""
        alive = [
            (name, size)
            for name, size, first, last in zip(
                self.names, self.size, self.born, self.until, strict=True
            )
            if size and first <= index <= last
        ]
        alive.sort(key=lambda item: -item[1])
        return tuple(alive)
