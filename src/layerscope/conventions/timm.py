"""timm's published GMACs and activations: fvcore's rules, attention not fused."""

from __future__ import annotations

from layerscope.conventions import fvcore
from layerscope.conventions.convention import Convention
from layerscope.conventions.counted_nodes import CountedNode
from layerscope.conventions.functions import Rule, free, products
from layerscope.graph.types import elements
from layerscope.ops import Ops
from layerscope.ops.attention import Sizes

# Classes that, without fused attention, subtract two attention maps before the product with the
# values; with fused attention they subtract two such products.
DIFFERENTIAL = ("DiffAttention", "DiffParallelScalingBlock")


def _is_differential(node: CountedNode) -> bool:
    return node.outer_classes[-1].rpartition(".")[2] in DIFFERENTIAL


def _attention(node: CountedNode) -> Ops:
    if not _is_differential(node):
        return products(node)
    values = elements(node.call.y) * node.call.inputs[1][-2]
    return Ops(mac=node.ops.mac - values // 2)


RULES: dict[str, Rule] = {**fvcore.RULES, "scaled_dot_product_attention": _attention}


def _count(node: CountedNode) -> Ops:
    return RULES.get(node.function, free)(node)


def _activations(node: CountedNode) -> int:
    """As fvcore's; attention also writes its scores, since it is two products."""
    if node.op == "attention":
        output = elements(node.call.y)
        return Sizes(node.call).scores + (output // 2 if _is_differential(node) else output)
    return fvcore.activations(node)


CONVENTION = Convention(
    name="timm",
    says="fvcore's count with attention as two products; activations of convolutions and products",
    figure="MACs",
    headline=lambda ops: ops.mac + ops.add,
    sees="functions",
    count=_count,
    activations=_activations,
    counted_params="all",
    caveats=fvcore.caveats,
)
