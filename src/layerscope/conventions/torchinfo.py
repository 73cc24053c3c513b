"""torchinfo 1.8: parameters of each leaf module times the positions of its output.

Convolutions count all positions, other modules the first axis, recurrent modules the first two.
"""

from __future__ import annotations

from layerscope.conventions.convention import Convention
from layerscope.conventions.counted_nodes import CountedNode, LeafCall, array_name
from layerscope.graph.types import Param, elements
from layerscope.ops import FREE, Ops


def _times(leaf: LeafCall, name: str) -> int:
    if name in ("weight", "bias"):
        conv = "Conv" in leaf.module_class.rpartition(".")[2]
        return elements(leaf.y[:1] + leaf.y[2:]) if conv else elements(leaf.y[:1])
    return elements(leaf.y[:2]) if "weight" in name or "bias" in name else 0


def _count(node: CountedNode) -> Ops:
    """Weights of products as multiply-adds, all other parameters as additions."""
    if node.leaf_call is None:
        return FREE
    leaf = node.leaf_call

    def counted(bias: bool) -> int:
        return sum(_mult_adds(leaf, p) for p in leaf.params if ("bias" in array_name(p)) is bias)

    if node.ops.mac:
        return Ops(mac=counted(False), add=counted(True))
    return Ops(add=counted(False) + counted(True))


def _mult_adds(leaf: LeafCall, param: Param) -> int:
    return param.elements * _times(leaf, array_name(param))


def _params(node: CountedNode) -> int:
    """Each leaf module once, tied arrays again; parameters outside leaf modules as they are."""
    if node.leaf_call is not None:
        return 0 if node.leaf_call.repeated else node.leaf_call.param_count
    return 0 if node.leaf_path else node.cost.param_count


CONVENTION = Convention(
    name="torchinfo",
    says="parameters of leaf modules times output positions, biases included; functions not seen",
    figure="mult-adds",
    headline=lambda ops: ops.mac + ops.add,
    sees="modules",
    count=_count,
    params=_params,
    counted_params="all",
    why={
        "linear layers on sequences": "it counts the first axis alone",
        "linear layers inside attention modules": "it counts the first axis alone",
        "attention modules": "they hold modules inside, and only leaves are counted",
        "transposed convolutions": "it counts output positions, not input positions, and no groups",
    },
)
