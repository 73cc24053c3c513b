"""Every op's rule, by name. To add one, write it in its family's file."""

from __future__ import annotations

from layerscope.ops import (
    activation,
    algebra,
    attention,
    choosing,
    control,
    convolution,
    cutting,
    elementwise,
    indexing,
    linear,
    normalization,
    pooling,
    quantization,
    recurrent,
    reduction,
    regions,
    resizing,
    searching,
    shaping,
    softmax,
    spectra,
    unrolled,
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
    cutting.RULES,
    resizing.RULES,
    regions.RULES,
    reduction.RULES,
    indexing.RULES,
    attention.RULES,
    recurrent.RULES,
    unrolled.RULES,
    quantization.RULES,
    choosing.RULES,
    spectra.RULES,
    control.RULES,
    searching.RULES,
    algebra.RULES,
)

__all__ = ["FREE", "RULES", "Call", "Gemm", "Ops", "Rule"]
