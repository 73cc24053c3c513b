"""The converters of all ATen operators, by name."""

from __future__ import annotations

from layerscope.formats.torch.aten import COMMON, fft, linalg, loss, recurrent, roi, search
from layerscope.formats.torch.lowering import Converter
from layerscope.tables import merge_tables

CONVERTERS: dict[str, Converter] = merge_tables(
    "ATen converters",
    COMMON,
    fft.TABLE,
    linalg.TABLE,
    loss.TABLE,
    recurrent.TABLE,
    roi.TABLE,
    search.TABLE,
)
