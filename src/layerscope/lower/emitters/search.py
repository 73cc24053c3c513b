"""Top-k, binary search, running extremes, distances and embedding bags."""

from __future__ import annotations

from layerscope.graph.attributes import TopK
from layerscope.lower.builder import NO_OPERATOR, Emitter, NodeEmitter


def top_k(node: NodeEmitter) -> tuple[str, ...]:
    a: TopK = node.attributes
    return node.add_multi("TopK", node.x, node.ints(a.k), outputs=2, axis=a.axis)


EMITTERS: dict[str, Emitter] = {"top_k": top_k}

REFUSED = dict.fromkeys(
    ("cdist", "searchsorted", "bincount", "cum_max", "cum_min", "masked_scatter", "embedding_bag"),
    NO_OPERATOR,
)
