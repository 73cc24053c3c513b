"""BRUTE: every op as plain loops from its definition; CASES: shapes and attributes to run it on.

The files have the stems of ops/. ONNX models of the same ops are in `onnx_models`.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.brute import (
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
from tests.brute.arrays import Array, Run
from tests.brute.case import Case

FAMILIES = (
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

BRUTE: dict[str, Callable[[Run], list[Array]]] = {
    op: loop for family in FAMILIES for op, loop in family.BRUTE.items()
}
CASES: list[Case] = [case for family in FAMILIES for case in family.CASES]
