"""Checks that a graph is well formed. Shapes are checked by the analysis."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from layerscope.errors import GraphError
from layerscope.limits import MOST_SIZE, NAME_DEPTH, SCOPES, plain

if TYPE_CHECKING:
    from layerscope.graph.types import Graph

SCOPES_FREE = 250  # added to the number of layers in the limit, for small networks


def check(graph: Graph) -> None:
    """Raise GraphError unless names are unique and nodes are in topological order."""
    produced: set[str] = set()
    for kind, items in (("input", graph.inputs), ("param", graph.params)):
        for item in items:
            if item.name in produced:
                raise GraphError(f"{graph.name}: {kind} {item.name!r} is declared twice")
            produced.add(item.name)
            if item.shape and max(item.shape) > MOST_SIZE:
                raise GraphError(
                    f"{graph.name}: {kind} {item.name!r} has an axis of {plain(max(item.shape))}, "
                    "expected at most 2^63 - 1"
                )
    if not graph.inputs and not graph.own_layout:  # a file may have only constants
        raise GraphError(f"{graph.name}: a graph needs at least one input")
    given = frozenset(produced)
    scope: tuple[str, ...] = ()
    scopes: set[tuple[str, ...]] = set()
    add, have_all, count, sound = produced.update, produced.issuperset, len(produced), True
    for node in graph.nodes:
        outputs = node.outputs
        if node.scope is not scope:
            scope = node.scope
            scopes.add(scope)
        if not outputs or not have_all(node.inputs):
            sound = False
            break
        add(outputs)
        count += len(outputs)
    if not sound or len(produced) < count or len({n.name for n in graph.nodes}) < len(graph.nodes):
        raise GraphError(_unsound(graph, given))
    for tensor in graph.outputs:
        if tensor not in produced:
            raise GraphError(f"{graph.name}: output {tensor!r} is produced by no node")
    if scopes and graph.autograd is None:  # live models are trusted
        _check_scopes(graph, scopes)


def _unsound(graph: Graph, given: Collection[str]) -> str:
    """What is wrong with the first node that is; `given` are inputs and params."""
    names: set[str] = set()
    produced = set(given)
    for node in graph.nodes:
        name = node.name
        if name in names:
            return f"{graph.name}: two nodes are named {name!r}"
        names.add(name)
        lost = next((tensor for tensor in node.inputs if tensor not in produced), None)
        if lost is not None:
            return _unproduced(graph, name, lost)
        if not node.outputs:
            return f"{graph.name}: {name} has no output"
        for tensor in node.outputs:
            if tensor in produced:
                return f"{graph.name}: {name}: tensor {tensor!r} is produced twice"
            produced.add(tensor)
    raise AssertionError(f"{graph.name}: every node is sound")


def _check_scopes(graph: Graph, scopes: set[tuple[str, ...]]) -> None:
    """Raise if module paths are too deep, or modules too many for the number of nodes."""
    most = max(map(len, scopes), default=0)
    if most > NAME_DEPTH.most:
        NAME_DEPTH.check(most, graph.name)
    room = SCOPES.most * (SCOPES_FREE + len(graph.nodes))
    if sum(map(len, scopes)) <= room:
        return
    paths: set[tuple[str, ...]] = set()
    for scope in scopes:
        while scope and scope not in paths:
            paths.add(scope)
            scope = scope[:-1]
        if len(paths) > room:
            raise GraphError(
                f"{graph.name}: more than {room:,} modules around {len(graph.nodes):,} layers, the "
                f"limit {SCOPES.name} is {SCOPES.most} for each"
            )


def _unproduced(graph: Graph, name: str, tensor: str) -> str:
    later = next((node.name for node in graph.nodes if tensor in node.outputs), None)
    why = f"is produced only later, by {later}" if later else "is produced by no node"
    return f"{graph.name}: {name} reads {tensor!r}, which {why}"
