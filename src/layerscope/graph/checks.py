"""What makes a graph well formed. Shapes are not looked at here: the analysis checks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layerscope.errors import GraphError

if TYPE_CHECKING:
    from layerscope.graph.types import Graph


def check(graph: Graph) -> None:
    """Raise unless names are unique, the order topological and every input produced."""
    known: set[str] = set()
    for kind, items in (("input", graph.inputs), ("param", graph.params)):
        for item in items:
            if item.name in known:
                raise GraphError(f"{graph.name}: {kind} {item.name!r} is declared twice")
            known.add(item.name)
    if not graph.inputs and not graph.own_layout:  # a file may hold a graph of constants alone
        raise GraphError(f"{graph.name}: a graph needs at least one input")
    names: set[str] = set()
    for node in graph.nodes:
        name = node.name
        if name in names:
            raise GraphError(f"{graph.name}: two nodes are named {name!r}")
        names.add(name)
        for tensor in node.inputs:
            if tensor not in known:
                raise GraphError(_unproduced(graph, name, tensor))
        if not node.outputs:
            raise GraphError(f"{graph.name}: {name} has no output")
        for tensor in node.outputs:
            if tensor in known:
                raise GraphError(f"{graph.name}: {name}: tensor {tensor!r} is produced twice")
            known.add(tensor)
    for tensor in graph.outputs:
        if tensor not in known:
            raise GraphError(f"{graph.name}: output {tensor!r} is produced by no node")


def _unproduced(graph: Graph, name: str, tensor: str) -> str:
    later = next((node.name for node in graph.nodes if tensor in node.outputs), None)
    why = f"is produced only later, by {later}" if later else "is produced by no node"
    return f"{graph.name}: {name} reads {tensor!r}, which {why}"
