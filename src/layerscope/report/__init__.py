"""The account of a network, and ways to look at it."""

from __future__ import annotations

from layerscope.report.types import Coverage, Layer, Report, Totals

__all__ = ["Coverage", "Layer", "Report", "Totals"]
