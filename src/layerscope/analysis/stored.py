"""Checks that arrays stored in a file have the shapes that the rules derive."""

from __future__ import annotations

from layerscope.analysis.shapes import Shapes
from layerscope.errors import ShapeError
from layerscope.graph.types import Graph, Node, Shape
from layerscope.ops import SPECS


def check_stored(graph: Graph, shapes: Shapes, file: str = "") -> tuple[str, ...]:
    """Raise where an array is stored in another shape than a rule derives.

    Returns the names of nodes without the arrays they should have; `file` is named in errors.
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
                    f"{_where(graph, node)}: {name} is {_shape_text(found[name])} in "
                    f"{file or 'the file'}, expected {_shape_text(shape)} for an input "
                    f"of {_shape_text(call.x)}"
                )
        if found.keys() != wanted.keys():
            names = ", ".join(found) or "nothing"
            raise ShapeError(
                f"{_where(graph, node)}: {names} stored in {file or 'the file'}, expected "
                f"{', '.join(wanted)}"
            )
    return tuple(missing)


def _where(graph: Graph, node: Node) -> str:
    return f"{node.source}: {node.name}" if node.source else f"{graph.name}: {node.name}"


def _shape_text(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "a single number"
