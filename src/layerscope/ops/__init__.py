"""Every op's rule, by name. To add one, write it in its family's file."""

from __future__ import annotations

from layerscope.ops import (
    activation,
    attention,
    caffe_recurrent,
    control,
    convolution,
    data_dependent,
    elementwise,
    fft,
    indexing,
    layout,
    linalg,
    linear,
    loss,
    normalization,
    pooling,
    quantization,
    recurrent,
    reduction,
    resize,
    roi,
    search,
    slice_concat,
)
from layerscope.ops.spec import FREE, Call, Gemm, Ops, OpSpec, merge

SPECS = merge(
    convolution.SPECS,
    linear.SPECS,
    pooling.SPECS,
    normalization.SPECS,
    activation.SPECS,
    elementwise.SPECS,
    loss.SPECS,
    layout.SPECS,
    slice_concat.SPECS,
    resize.SPECS,
    roi.SPECS,
    reduction.SPECS,
    indexing.SPECS,
    attention.SPECS,
    recurrent.SPECS,
    caffe_recurrent.SPECS,
    quantization.SPECS,
    data_dependent.SPECS,
    fft.SPECS,
    control.SPECS,
    search.SPECS,
    linalg.SPECS,
)

__all__ = ["FREE", "SPECS", "Call", "Gemm", "OpSpec", "Ops"]
