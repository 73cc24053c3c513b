"""MODELS: an ONNX model of each op for onnxruntime, in a file with the stem of ops/."""

from __future__ import annotations

from tests.brute.engine import Writer
from tests.brute.onnx_models import (
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

MODELS: dict[str, Writer] = {
    **activation.MODELS,
    **attention.MODELS,
    **caffe_recurrent.MODELS,
    **control.MODELS,
    **convolution.MODELS,
    **data_dependent.MODELS,
    **elementwise.MODELS,
    **fft.MODELS,
    **indexing.MODELS,
    **layout.MODELS,
    **linalg.MODELS,
    **linear.MODELS,
    **loss.MODELS,
    **normalization.MODELS,
    **pooling.MODELS,
    **quantization.MODELS,
    **recurrent.MODELS,
    **reduction.MODELS,
    **resize.MODELS,
    **roi.MODELS,
    **search.MODELS,
    **slice_concat.MODELS,
}
