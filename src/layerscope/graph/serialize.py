"""A graph as plain values that JSON holds, and back."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from layerscope.errors import FormatError
from layerscope.graph import attributes
from layerscope.graph.types import Graph


def to_plain(graph: Graph) -> dict[str, Any]:
    """The graph as dicts and lists; what a node was told carries the name of its type."""
    plain: dict[str, Any] = msgspec.to_builtins(graph)
    for node, told in zip(graph.nodes, plain["nodes"], strict=True):
        kind = type(node.attributes).__name__
        told["attributes"] = None if node.attributes is None else [kind, told["attributes"]]
    return plain


def from_plain(plain: Any) -> Graph:
    """The graph that `to_plain` made those values of."""
    try:
        graph = msgspec.convert(plain, Graph)
        nodes = tuple(
            replace(node, attributes=_attributes(node.attributes)) for node in graph.nodes
        )
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise FormatError(f"no graph of ours: {error}") from None
    return replace(graph, nodes=nodes)


def _attributes(told: Any) -> Any:
    if told is None:
        return None
    name, values = told
    if name not in attributes.__all__:
        raise FormatError(f"attributes of a kind {name!r} that is not known here")
    return msgspec.convert(values, getattr(attributes, name))
