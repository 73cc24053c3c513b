"""Activation memory: as a sum, and as a peak by liveness in execution order."""

from __future__ import annotations

from msgspec import Struct

from layerscope.analysis.shapes import Shapes
from layerscope.graph.types import Graph
from layerscope.ops import RULES


class Memory(Struct, frozen=True, gc=False):
    """Bytes of activations. A tensor lives from its node to its last reader; outputs to the end."""

    written: dict[str, int]  # node -> elements of new storage it makes
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
    owner: dict[str, str] = {}  # tensor -> tensor that owns its storage
    size: dict[str, int] = {}  # owner -> bytes
    until: dict[str, int] = {}  # owner -> last node that needs it
    born: dict[str, int] = {}
    written: dict[str, int] = {}
    complete = True
    callers = set()
    for tensor in graph.inputs:
        owner[tensor.name] = tensor.name
        size[tensor.name] = tensor.bytes
        born[tensor.name] = 0
        until[tensor.name] = last.get(tensor.name, 0)
        callers.add(tensor.name)
        complete = complete and tensor.shape is not None
    for index, node in enumerate(graph.nodes):
        rule = RULES.get(node.op)
        source = owner.get(node.inputs[0]) if node.inputs else None
        made = 0
        for position, name in enumerate(node.outputs):
            tensor = shapes.tensors[name]
            complete = complete and tensor.shape is not None
            share = False
            if rule is not None and source is not None and position == 0:
                share = rule.view or (
                    in_place
                    and rule.in_place
                    and source not in callers
                    and until[source] == index
                    and size[source] == tensor.bytes
                )
            ends = last.get(name, index)
            if share and source is not None:
                owner[name] = source
                until[source] = max(until[source], ends)
            else:
                owner[name] = name
                size[name] = tensor.bytes
                born[name] = index
                until[name] = ends
                made += tensor.elements
        written[node.name] = made
    alive = _sum_alive(end, size, born, until)
    peak = max(range(end), key=alive.__getitem__) if end else 0
    holding = [(t, size[t]) for t in size if born[t] <= peak <= until[t]]
    holding.sort(key=lambda item: -item[1])
    return Memory(
        written,
        tuple(alive),
        alive[peak] if alive else 0,
        graph.nodes[peak].name if end else "",
        tuple(holding),
        complete,
        in_place,
    )


def _sum_alive(
    end: int, size: dict[str, int], born: dict[str, int], until: dict[str, int]
) -> list[int]:
    change = [0] * (end + 2)
    for tensor, held in size.items():
        change[born[tensor]] += held
        change[min(until[tensor], end) + 1] -= held
    alive = []
    now = 0
    for delta in change[:end]:
        now += delta
        alive.append(now)
    return alive
