"""Conversion of a graph to plain values, which JSON can store, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from layerscope.errors import FormatError
from layerscope.graph import attributes
from layerscope.graph.types import Graph


def to_plain(graph: Graph) -> dict[str, Any]:
    """The graph as dicts and lists; attributes become a pair of class name and fields."""
    plain: dict[str, Any] = msgspec.to_builtins(graph)
    _sort_sets(graph, plain)
    if graph.autograd is not None:
        _sort_sets(graph.autograd, plain["autograd"])
    for node, plain_node in zip(graph.nodes, plain["nodes"], strict=True):
        kind = type(node.attributes).__name__
        fields = plain_node["attributes"]
        plain_node["attributes"] = None if node.attributes is None else [kind, fields]
    return plain


def _sort_sets(struct: msgspec.Struct, plain: dict[str, Any]) -> None:
    """Sort what is a set: its order is another in every process, and JSON would differ."""
    for name in struct.__struct_fields__:
        if isinstance(getattr(struct, name), frozenset):
            plain[name] = sorted(plain[name])


def from_plain(plain: object) -> Graph:
    """The graph of values that `to_plain` returned; raises FormatError for others."""
    try:
        graph = msgspec.convert(plain, Graph)
        nodes = tuple(
            replace(node, attributes=_attributes(node.attributes)) for node in graph.nodes
        )
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise FormatError(f"not a serialized graph: {error}") from None
    return replace(graph, nodes=nodes)


def _attributes(pair: Sequence[Any] | None) -> msgspec.Struct | None:
    if pair is None:
        return None
    name, values = pair
    if name not in attributes.__all__:
        raise FormatError(f"unknown class of attributes {name!r}")
    converted: msgspec.Struct = msgspec.convert(values, getattr(attributes, name))
    return converted
