"""The converters of all ONNX operators, by domain and operator."""

from __future__ import annotations

from layerscope.formats.onnx.converters import (
    COMMON,
    attention,
    control,
    data_dependent,
    fft,
    legacy,
    linalg,
    linear_attention,
    loops,
    loss,
    ml,
    optimizers,
    ort_contrib,
    ort_optimized,
    ort_transformers,
    recurrent,
    roi,
    rotary,
    search,
    sequences,
    strings,
    subbyte,
)
from layerscope.formats.onnx.node import ConverterTable
from layerscope.tables import merge_tables

CONVERTERS: ConverterTable = merge_tables(
    "ONNX converters",
    COMMON,
    attention.OPERATORS,
    control.OPERATORS,
    data_dependent.OPERATORS,
    fft.OPERATORS,
    legacy.OPERATORS,
    linalg.OPERATORS,
    linear_attention.OPERATORS,
    loops.OPERATORS,
    loss.OPERATORS,
    ml.OPERATORS,
    optimizers.OPERATORS,
    ort_contrib.OPERATORS,
    ort_optimized.OPERATORS,
    ort_transformers.OPERATORS,
    recurrent.OPERATORS,
    roi.OPERATORS,
    rotary.OPERATORS,
    search.OPERATORS,
    sequences.OPERATORS,
    strings.OPERATORS,
    subbyte.OPERATORS,
)
