"""Our own convention: everything, by kind, exactly."""

from __future__ import annotations

from layerscope.conventions.convention import Convention

CONVENTION = Convention(
    name="exact",
    says="every operation by kind; FLOPs = 2·MAC + all others; tied parameters once",
    figure="FLOPs",
    headline=lambda ops: ops.flops,
    twice=True,
)
