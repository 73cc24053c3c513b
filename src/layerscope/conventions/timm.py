"""timm's published GMACs and activations: fvcore's rules with attention written out."""

from __future__ import annotations

from layerscope.conventions import fvcore
from layerscope.conventions.convention import Convention
from layerscope.conventions.functions import Rule, free, products
from layerscope.conventions.sites import Site
from layerscope.graph.types import elements
from layerscope.ops import Ops
from layerscope.ops.attention import Sizes

# Classes whose attention, written out, takes the difference of two maps before the product with
# the values; fused, it takes the difference of two such products.
DIFFERENTIAL = ("DiffAttention", "DiffParallelScalingBlock")


def _of_two_maps(site: Site) -> bool:
    return site.around[-1].rpartition(".")[2] in DIFFERENTIAL


def _attention(site: Site) -> Ops:
    if not _of_two_maps(site):
        return products(site)
    values = elements(site.call.y) * site.call.inputs[1][-2]
    return Ops(mac=site.ops.mac - values // 2)


RULES: dict[str, Rule] = {**fvcore.RULES, "scaled_dot_product_attention": _attention}


def _seen(site: Site) -> Ops:
    return RULES.get(site.function, free)(site)


def _activations(site: Site) -> int:
    """Scores are made too where attention is two products."""
    if site.node.op == "attention":
        made = elements(site.call.y)
        return Sizes(site.call).scores + (made // 2 if _of_two_maps(site) else made)
    return fvcore.activations(site)


CONVENTION = Convention(
    name="timm",
    says="fvcore's count with attention as two products; activations of convolutions and products",
    figure="MACs",
    headline=lambda ops: ops.mac + ops.add,
    seen=_seen,
    seen_activations=_activations,
    learned="all",
    caveats=fvcore.caveats,
)
