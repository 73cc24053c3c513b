"""Boda: FLOPs of convolutions, two per multiply-add, biases and everything else uncounted."""

from __future__ import annotations

from layerscope.conventions.convention import Convention
from layerscope.ops import FREE, Call, Ops


def _products(call: Call, ops: Ops) -> Ops:
    return Ops(mac=ops.mac)


CONVENTION = Convention(
    name="boda",
    says="2 FLOPs per multiply-add of convolutions and linear layers, nothing else counted",
    figure="FLOPs",
    headline=lambda ops: 2 * ops.mac,
    ops=dict.fromkeys(("conv", "conv_transpose", "linear"), _products),
    other=lambda call, ops: FREE,
    twice=True,
)
