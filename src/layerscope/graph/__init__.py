"""The network as data: graphs, nodes, tensors and params."""

from __future__ import annotations

from layerscope.graph.types import (
    DTYPE_BITS,
    Graph,
    Node,
    Param,
    Role,
    Shape,
    Source,
    Tensor,
    elements,
    storage_bytes,
)

__all__ = [
    "DTYPE_BITS",
    "Graph",
    "Node",
    "Param",
    "Role",
    "Shape",
    "Source",
    "Tensor",
    "elements",
    "storage_bytes",
]
