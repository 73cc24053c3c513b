"""Activation memory: as a sum, and as a peak by liveness in execution order."""

from __future__ import annotations

from itertools import accumulate

from msgspec import Struct

from layerscope.analysis.shapes import Shapes
from layerscope.graph.types import Graph, Shape, Tensor
from layerscope.ops import SPECS


class Memory(Struct, frozen=True, gc=False):
    """Bytes of activations. A tensor lives from its node to its last reader; outputs to the end."""

    written: dict[str, int]  # node -> elements of new storage it makes
    written_bytes: dict[str, int]  # of that storage, each tensor in its own dtype
    alive_bytes: tuple[int, ...]  # while each node runs, in order
    peak_bytes: int
    peak_node: str
    peak_alive: tuple[tuple[str, int], ...]  # storages alive at the peak, largest first
    complete: bool  # False if a tensor of unknown shape was left out
    in_place: bool


def liveness(graph: Graph, shapes: Shapes, *, in_place: bool = False) -> Memory:
    """Follow storages through the graph: views share theirs, with `in_place` so do ops that may.

    An op works in place only if nobody reads its input later and that is not the network's own.
    """
    end = len(graph.nodes)
    last = {name: index for index, node in enumerate(graph.nodes) for name in node.inputs}
    last.update(dict.fromkeys(graph.outputs, end))
    inner = inner_tensors(graph)
    if inner:
        _hold_inputs(graph, last)
    owner: dict[str, int] = {}  # tensor -> its storage, numbered
    names: list[str] = []  # per storage: the tensor that made it, bytes, first and last node
    size: list[int] = []
    born: list[int] = []
    until: list[int] = []
    written: dict[str, int] = {}
    written_bytes: dict[str, int] = {}
    tensors, ends = shapes.tensors, shapes.ends
    sizes: dict[tuple[Shape | None, str], tuple[int, int]] = {}  # elements and bytes of those alike

    def sizes_of(tensor: Tensor) -> tuple[int, int]:
        key = (tensor.shape, tensor.dtype)
        found = sizes.get(key)
        if found is None:
            found = sizes[key] = (tensor.elements, tensor.bytes)
        return found

    def store(name: str, held: int, index: int) -> None:
        owner[name] = len(names)
        names.append(name)
        size.append(held)
        born.append(index)
        until.append(last.get(name, index))

    for tensor in graph.inputs:  # a cache of past tokens is counted apart
        store(tensor.name, 0 if tensor.name in graph.cache else sizes_of(tensor)[1], 0)
    for param in graph.params:  # a view of a stored array holds no activation
        if param.name in last:
            store(param.name, 0, 0)
    given = len(names)
    plain = {
        op: rule is None or not (rule.view or rule.folded or (in_place and rule.in_place))
        for op, rule in [(op, SPECS.get(op)) for op in {node.op for node in graph.nodes}]
    }
    for index, node in enumerate(graph.nodes):
        if inner and node.inner:
            for name in node.outputs:
                store(name, 0, index)
            written[node.name] = written_bytes[node.name] = 0
            continue
        made = made_bytes = 0
        if plain[node.op]:
            for tensor in ends[node.name][1]:  # as `store` does, for most nodes
                name = tensor.name
                elements, held_bytes = sizes.get((tensor.shape, tensor.dtype)) or sizes_of(tensor)
                owner[name] = len(names)
                names.append(name)
                size.append(held_bytes)
                born.append(index)
                until.append(last.get(name, index))
                made += elements
                made_bytes += held_bytes
            written[node.name] = made
            written_bytes[node.name] = made_bytes
            continue
        rule = SPECS[node.op]
        for position, name in enumerate(node.outputs):
            shared = None
            elements, held_bytes = sizes_of(tensors[name])
            if rule.folded:
                store(name, 0, index)
                continue
            if rule.view and position < len(node.inputs):
                source = node.inputs[position]
                if sizes_of(tensors[source])[1] == held_bytes and source not in inner:
                    shared = owner.get(source)
            elif position == 0 and not rule.view:
                held = [owner[source] for source in node.inputs if source in owner]
                free = [s for s in held if s >= given and until[s] == index]
                shared = next((s for s in free if size[s] == held_bytes), None)
            if shared is None:
                store(name, held_bytes, index)
                made += elements
                made_bytes += held_bytes
            else:
                owner[name] = shared
                until[shared] = max(until[shared], last.get(name, index))
        written[node.name] = made
        written_bytes[node.name] = made_bytes
    blank = any(shape is None for shape, _ in sizes)
    alive = _sum_alive(end, size, born, until)
    peak = alive.index(max(alive)) if end else 0
    holding = [
        (name, held)
        for name, held, first, final in zip(names, size, born, until, strict=True)
        if held and first <= peak <= final
    ]
    holding.sort(key=lambda item: -item[1])
    return Memory(
        written,
        written_bytes,
        tuple(alive),
        alive[peak] if alive else 0,
        graph.nodes[peak].name if end else "",
        tuple(holding),
        not blank,
        in_place,
    )


def inner_tensors(graph: Graph) -> frozenset[str]:
    """Names of values inside one operator of a file, which are no tensors of the network."""
    return frozenset([name for node in graph.nodes if node.inner for name in node.outputs])


def _hold_inputs(graph: Graph, last: dict[str, int]) -> None:
    """Keep what a step inside an operator reads until that operator is done."""
    for node in reversed(graph.nodes):
        if node.inner:
            done = max([last.get(name, 0) for name in node.outputs])
            for name in node.inputs:
                last[name] = max(last[name], done)


def _sum_alive(end: int, size: list[int], born: list[int], until: list[int]) -> list[int]:
    """Bytes held while each node runs."""
    change = [0] * (end + 2)
    for held, first, final in zip(size, born, until, strict=True):
        change[first] += held
        change[final + 1] -= held
    return list(accumulate(change[:end]))
