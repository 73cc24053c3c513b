"""timm's published GMACs and activations: fvcore's rules with attention written out."""

from __future__ import annotations

from layerscope.conventions import fvcore
from layerscope.conventions.convention import Convention
from layerscope.conventions.functions import Rule, free, products
from layerscope.conventions.sites import Site
from layerscope.graph.types import elements
from layerscope.ops import Ops
from layerscope.ops.attention import Sizes

RULES: dict[str, Rule] = {**fvcore.RULES, "scaled_dot_product_attention": products}


def _seen(site: Site) -> Ops:
    return RULES.get(site.function, free)(site)


def _activations(site: Site) -> int:
    """Scores are made too where attention is two products."""
    if site.node.op == "attention":
        return Sizes(site.call).scores + elements(site.call.y)
    return fvcore.activations(site)


CONVENTION = Convention(
    name="timm",
    says="fvcore's count with attention as two products; activations of convolutions and products",
    figure="MACs",
    headline=lambda ops: ops.mac + ops.add,
    seen=_seen,
    seen_activations=_activations,
    learned="all",
)
