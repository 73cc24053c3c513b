"""Boda: FLOPs of convolutions, two per multiply-add, biases and everything else uncounted."""

from __future__ import annotations

from layerscope.conventions.convention import Convention
from layerscope.conventions.counted_nodes import CountedNode
from layerscope.ops import FREE, Ops

PRODUCTS = ("conv", "conv_transpose", "linear")


def _count(node: CountedNode) -> Ops:
    return Ops(mac=node.ops.mac) if node.op in PRODUCTS else FREE


CONVENTION = Convention(
    name="boda",
    says="2 FLOPs per multiply-add of convolutions and linear layers, nothing else counted",
    figure="FLOPs",
    headline=lambda ops: 2 * ops.mac,
    count=_count,
    two_per_mac=True,
)
