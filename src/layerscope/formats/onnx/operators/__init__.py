"""Operators of ONNX as nodes of ours. To add one, write it in its family's file."""

from __future__ import annotations

from layerscope.formats.onnx.operators import (
    attention,
    control,
    convolution,
    elements,
    fused,
    indexing,
    moving,
    normalization,
    packed,
    pooling,
    products,
    quantized,
    recurrent,
    reducing,
    resizing,
    rotary,
    sequences,
    signals,
    transformers,
    trees,
)
from layerscope.formats.onnx.site import Convert

CONVERTERS: dict[tuple[str, str], Convert] = {
    **convolution.OPERATORS,
    **products.OPERATORS,
    **pooling.OPERATORS,
    **normalization.OPERATORS,
    **elements.OPERATORS,
    **moving.OPERATORS,
    **indexing.OPERATORS,
    **reducing.OPERATORS,
    **recurrent.OPERATORS,
    **quantized.OPERATORS,
    **packed.OPERATORS,
    **fused.OPERATORS,
    **control.OPERATORS,
    **resizing.OPERATORS,
    **sequences.OPERATORS,
    **signals.OPERATORS,
    **attention.OPERATORS,
    **rotary.OPERATORS,
    **transformers.OPERATORS,
    **trees.OPERATORS,
}
