"""torchvision's published GFLOPs, which are multiply-adds of convolutions and matrix products."""

from __future__ import annotations

from layerscope.conventions.convention import Convention
from layerscope.conventions.functions import products

CONVENTION = Convention(
    name="torchvision",
    says="multiply-adds of convolutions and products, called FLOPs; nothing else counted",
    figure="FLOPs",
    headline=lambda ops: ops.mac,
    count=products,
    counted_params="all",
    equals_macs=True,
)
