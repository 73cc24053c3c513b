"""Every op's rule, by name. To add one, write it in its family's file."""

from __future__ import annotations

from layerscope.ops import (
    activation,
    convolution,
    elementwise,
    linear,
    normalization,
    pooling,
    regions,
    resizing,
    shaping,
    softmax,
)
from layerscope.ops.rule import FREE, Call, Gemm, Ops, Rule, merge

RULES = merge(
    convolution.RULES,
    linear.RULES,
    pooling.RULES,
    normalization.RULES,
    activation.RULES,
    elementwise.RULES,
    softmax.RULES,
    shaping.RULES,
    resizing.RULES,
    regions.RULES,
)
for _later in ("roi_align", "nms", "prior_box", "grid_sample", "instance_norm", "rms_norm"):
    RULES.pop(_later)

__all__ = ["FREE", "RULES", "Call", "Gemm", "Ops", "Rule"]
