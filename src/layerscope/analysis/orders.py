"""Other orders of execution: a greedy search for one with a lower peak of activation memory."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from layerscope.analysis.memory import Lifetimes, Memory, lifetimes, liveness
from layerscope.analysis.shapes import Shapes
from layerscope.graph.types import Graph

MOST_CHOICES = 1_000_000  # nodes looked at; a search that needs more is given up

# alive bytes, bytes that a node creates, bytes that it frees, the peak until now -> what is least
Choice = Callable[[int, int, int, int], tuple[int, ...]]
CHOICES: tuple[Choice, ...] = (
    lambda alive, created, freed, peak: (created - freed,),
    lambda alive, created, freed, peak: (max(peak, alive + created), created - freed),
    lambda alive, created, freed, peak: (-freed, created),
)


class OtherOrder(Struct, frozen=True):
    """An order with a lower peak: its memory, and the nodes that move in it."""

    memory: Memory
    moved: tuple[str, ...]


def other_order(graph: Graph, shapes: Shapes, memory: Memory) -> OtherOrder | None:
    """The best of the orders that the greedy searches find; None if none has a lower peak.

    Steps inside an operator and nodes of loops keep their order, so that graphs with these have
    none.
    """
    if not memory.complete or any(node.inner or node.times != 1 for node in graph.nodes):
        return None
    search = _Search(graph, lifetimes(graph, shapes, in_place=memory.in_place))
    best: OtherOrder | None = None
    for choice in CHOICES:
        order = search.order(choice)
        if order is None:
            break
        nodes = tuple([graph.nodes[n] for n in order])
        found = liveness(replace(graph, nodes=nodes), shapes, in_place=memory.in_place)
        if found.peak_bytes < (memory if best is None else best.memory).peak_bytes:
            best = OtherOrder(found, tuple([graph.nodes[n].name for n in moved(order)]))
    return best


class _Search:
    """Nodes with the storages that they read and create."""

    def __init__(self, graph: Graph, lives: Lifetimes) -> None:
        owner, producer = lives.owner, dict[str, int]()
        for n, node in enumerate(graph.nodes):
            producer.update(dict.fromkeys(node.outputs, n))
        self.reads = [{owner[x] for x in node.inputs if x in owner} for node in graph.nodes]
        self.before = [{producer[x] for x in node.inputs if x in producer} for node in graph.nodes]
        self.after: list[list[int]] = [[] for _ in graph.nodes]
        for n, many in enumerate(self.before):
            for each in many:
                self.after[each].append(n)
        self.bytes = lives.bytes
        self.created = [0] * len(graph.nodes)
        self.start = 0
        for name, size in zip(lives.names, lives.bytes, strict=True):
            if name in producer:
                self.created[producer[name]] += size
            else:
                self.start += size
        self.readers = [0] * len(lives.bytes)
        for storages in self.reads:
            for storage in storages:
                self.readers[storage] += 1
        for name in graph.outputs:  # these are never freed
            if name in owner:
                self.readers[owner[name]] += 1

    def order(self, choice: Choice) -> list[int] | None:
        """Indices of the nodes, at each step that which `choice` ranks first."""
        missing, readers = [len(many) for many in self.before], list(self.readers)
        ready = [n for n, count in enumerate(missing) if not count]
        order: list[int] = []
        alive = peak = self.start
        looked = 0
        while ready:
            looked += len(ready)
            if looked > MOST_CHOICES:
                return None
            freed = [self._freed(n, readers) for n in ready]
            ranks = [
                (*choice(alive, self.created[n], free, peak), n)
                for n, free in zip(ready, freed, strict=True)
            ]
            at = ranks.index(min(ranks))
            n = ready.pop(at)
            order.append(n)
            peak = max(peak, alive + self.created[n])
            alive += self.created[n] - freed[at]
            for storage in self.reads[n]:
                readers[storage] -= 1
            for each in self.after[n]:
                missing[each] -= 1
                if not missing[each]:
                    ready.append(each)
        return order

    def _freed(self, n: int, readers: Sequence[int]) -> int:
        """Bytes that only this node still reads."""
        return sum([self.bytes[s] for s in self.reads[n] if readers[s] == 1])


def moved(order: Sequence[int]) -> list[int]:
    """The fewest that must move to sort an order: all but a longest increasing subsequence."""
    ends: list[int] = []  # least last value of an increasing subsequence of each length
    previous: dict[int, int] = {}
    for value in order:
        at = bisect_left(ends, value)
        if at:
            previous[value] = ends[at - 1]
        ends[at : at + 1] = [value]
    kept: set[int] = set()
    value = ends[-1] if ends else -1
    while value >= 0:
        kept.add(value)
        value = previous.get(value, -1)
    return [value for value in order if value not in kept]
