"""Arrays as a file stores them against those that the rules derive from shapes."""

from __future__ import annotations

from layerscope.analysis.shapes import Shapes
from layerscope.errors import ShapeError
from layerscope.graph.types import Graph, Node, Shape
from layerscope.ops import SPECS


def check_stored(graph: Graph, shapes: Shapes, file: str = "") -> tuple[str, ...]:
    """Raise where an array is stored in another shape than a rule derives.

    Returns the names of nodes that should have arrays and have none; `file` is where they are from.
    """
    missing = []
    for node in graph.nodes:
        call = shapes.calls.get(node.name)
        derived = SPECS[node.op].params(call) if call is not None else ()
        if node.params is None:
            if derived:
                missing.append(node.name)
            continue
        if call is None or not derived:
            continue
        wanted = {param.name: param.shape for param in derived}
        found = {param.name: param.shape for param in node.params}
        for name, shape in wanted.items():
            if name in found and found[name] != shape:
                raise ShapeError(
                    f"{_where(graph, node)}: {name} is {_told(found[name])} in {file or 'the file'}"
                    f", expected {_told(shape)} for an input of {_told(call.x)}"
                )
        if found.keys() != wanted.keys():
            held = ", ".join(found) or "nothing"
            raise ShapeError(
                f"{_where(graph, node)}: {held} stored in {file or 'the file'}, expected "
                f"{', '.join(wanted)}"
            )
    return tuple(missing)


def _where(graph: Graph, node: Node) -> str:
    return f"{node.source}: {node.name}" if node.source else f"{graph.name}: {node.name}"


def _told(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "a single number"
