"""Converters of ONNX operators, by domain and operator. To add one, see CONTRIBUTING.md.

Families that most models use are imported with this package, the others with the first model that
has an operator of them.
"""

from __future__ import annotations

from layerscope.formats.onnx.converters import (
    activation,
    convolution,
    elementwise,
    generators,
    indexing,
    layout,
    linear,
    normalization,
    pooling,
    quantization,
    reduction,
    resize,
    slice_concat,
)
from layerscope.formats.onnx.node import Converter, ConverterTable
from layerscope.tables import merge_tables

COMMON: ConverterTable = merge_tables(
    "ONNX converters",
    activation.OPERATORS,
    convolution.OPERATORS,
    elementwise.OPERATORS,
    generators.OPERATORS,
    indexing.OPERATORS,
    layout.OPERATORS,
    linear.OPERATORS,
    normalization.OPERATORS,
    pooling.OPERATORS,
    quantization.OPERATORS,
    reduction.OPERATORS,
    resize.OPERATORS,
    slice_concat.OPERATORS,
)


def converter_of(operator: tuple[str, str]) -> Converter | None:
    """The converter of an operator, given as domain and name; None if it has none."""
    found = COMMON.get(operator)
    if found is None:
        from layerscope.formats.onnx.converters.table import CONVERTERS

        found = CONVERTERS.get(operator)
    return found
