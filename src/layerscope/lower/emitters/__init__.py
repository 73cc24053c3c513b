"""How each op is written in ONNX. To add an op, write its emitter in the file of its family.

Each file has the stem of the file in `layerscope.ops` that defines its ops. `EMITTERS` has a
function for each op that ONNX can express, `REFUSED` the reason for each op that it cannot.
"""

from __future__ import annotations

from layerscope.lower.builder import Emitter
from layerscope.lower.emitters import (
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
from layerscope.tables import merge_tables

FAMILIES = (
    convolution, linear, pooling, normalization, activation, elementwise, loss, layout,
    slice_concat, resize, roi, reduction, indexing, attention, recurrent, caffe_recurrent,
    quantization, data_dependent, fft, control, search, linalg,
)  # fmt: skip


EMITTERS: dict[str, Emitter] = merge_tables("emitters", *[each.EMITTERS for each in FAMILIES])
REFUSED: dict[str, str] = merge_tables(
    "reasons",
    control.REFUSED,
    data_dependent.REFUSED,
    elementwise.REFUSED,
    fft.REFUSED,
    layout.REFUSED,
    linalg.REFUSED,
    loss.REFUSED,
    roi.REFUSED,
    search.REFUSED,
)

__all__ = ["EMITTERS", "REFUSED"]
