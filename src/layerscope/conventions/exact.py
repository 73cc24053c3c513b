"""The default convention: every operation by kind, no figure changed."""

from __future__ import annotations

from layerscope.conventions.convention import Convention

CONVENTION = Convention(
    name="exact",
    says="every operation by kind; FLOPs = 2·MAC + all others; tied parameters once",
    figure="FLOPs",
    headline=lambda ops: ops.flops,
    counted_params="all",
    two_per_mac=True,
)
