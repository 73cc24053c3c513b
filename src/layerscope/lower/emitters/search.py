"""Top-k, binary search, running sums and extremes, distances and embedding bags."""

from __future__ import annotations

from layerscope.graph.attributes import CumSum, TopK
from layerscope.lower.builder import NO_OPERATOR, Emitter, NodeEmitter, OnnxConstant


def top_k(node: NodeEmitter) -> tuple[str, ...]:
    a: TopK = node.attributes
    return node.add_multi("TopK", node.x, node.ints(a.k), outputs=2, axis=a.axis)


def cum_prod(node: NodeEmitter) -> str:
    """The product over a row of each element, with ones for all later elements."""
    a: CumSum = node.attributes or CumSum()
    axis = a.axis % node.rank
    size = node.shape[axis]
    upto = tuple(float(j <= i) for i in range(size) for j in range(size))
    mask = node.builder.constant(
        OnnxConstant(upto, (size, size, *[1] * (node.rank - axis - 1)), "bool")
    )
    rows = node.add("Unsqueeze", node.x, node.ints(axis))
    masked = node.add("Where", mask, rows, node.number(1.0))
    return node.add("ReduceProd", masked, node.ints(axis + 1), keepdims=0)


def cum_sum(node: NodeEmitter) -> str:
    return node.add("CumSum", node.x, node.ints((node.attributes or CumSum()).axis))


EMITTERS: dict[str, Emitter] = {"top_k": top_k, "cum_sum": cum_sum, "cum_prod": cum_prod}

REFUSED = dict.fromkeys(
    ("cdist", "searchsorted", "bincount", "cum_max", "cum_min", "masked_scatter", "embedding_bag"),
    NO_OPERATOR,
)
