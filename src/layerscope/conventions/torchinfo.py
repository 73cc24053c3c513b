"""torchinfo 1.8: parameters of each leaf module times the positions of its output.

Convolutions count every position; all others the first axis alone, recurrent ones the first two.
"""

from __future__ import annotations

from layerscope.conventions.convention import Convention
from layerscope.conventions.sites import Leaf, Site, array_name
from layerscope.graph.types import Param, elements
from layerscope.ops import FREE, Ops


def _times(leaf: Leaf, name: str) -> int:
    if name in ("weight", "bias"):
        conv = "Conv" in leaf.kind.rpartition(".")[2]
        return elements(leaf.y[:1] + leaf.y[2:]) if conv else elements(leaf.y[:1])
    return elements(leaf.y[:2]) if "weight" in name or "bias" in name else 0


def _seen(site: Site) -> Ops:
    """Weights of products as multiply-adds, all else as additions."""
    if site.leaf is None:
        return FREE
    leaf, work = site.leaf, bool(site.ops.mac)

    def counted(bias: bool) -> int:
        return sum(_count(leaf, p) for p in leaf.arrays if ("bias" in array_name(p)) is bias)

    if work:
        return Ops(mac=counted(False), add=counted(True))
    return Ops(add=counted(False) + counted(True))


def _count(leaf: Leaf, param: Param) -> int:
    return param.elements * _times(leaf, array_name(param))


def _params(site: Site) -> int:
    """Every leaf module's own once, tied ones again; what is held elsewhere as it is."""
    if site.leaf is not None:
        return 0 if site.leaf.again else site.leaf.param_count
    return 0 if site.place else site.cost.param_count


CONVENTION = Convention(
    name="torchinfo",
    says="parameters of leaf modules times output positions, biases included; functions not seen",
    figure="mult-adds",
    headline=lambda ops: ops.mac + ops.add,
    seen=_seen,
    seen_params=_params,
    learned="all",
    why={
        "linear layers on sequences": "it counts the first axis alone",
        "linear layers inside attention modules": "it counts the first axis alone",
        "attention modules": "they hold modules inside, and only leaves are counted",
        "transposed convolutions": "it counts output positions, not input positions, and no groups",
    },
)
