"""Drop-in replacements for the functions of other counters, for PyTorch modules.

`summary` takes the arguments of torchinfo's, `profile` those of thop's, `FlopCountAnalysis` those
of fvcore's. The figures are exact multiply-adds, and every operator is counted or listed as
unknown; with `like="thop"` and so on they are the figures that this tool prints.
"""

from __future__ import annotations

from layerscope.dropins.counters import FlopCountAnalysis, figure_of, profile
from layerscope.dropins.torchinfo import Summary, summary

__all__ = ["FlopCountAnalysis", "Summary", "figure_of", "profile", "summary"]
