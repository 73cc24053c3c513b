"""The network as data, and the Builder that writes one in Python."""

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
