"""A report as csv: a layer a row, figures in full, no totals."""

from __future__ import annotations

from fractions import Fraction
from io import StringIO
from typing import Any

from layerscope.export.table import View, table
from layerscope.report.types import Report

COLUMNS = (
    "name", "type", "input", "output", "params", "buffers", "macs", "flops", "add", "mul", "comp",
    "div", "exp", "activations", "read", "write", "intensity", "gemm", "field", "field_stride",
    "field_offset", "status", "note",
)  # fmt: skip


def write(report: Report, view: View | None = None) -> str:
    """The table with names of columns in its first line."""
    import csv

    grid = table(report, view or View(), COLUMNS, tree=False)
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.name for column in grid.columns])
    for row in grid.rows:
        writer.writerow([_plain(value) for value in grid.cells(row)])
    return out.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return f"{float(value):.6g}"
    text = "" if value is None else value
    if isinstance(text, str) and text[:1] in ("=", "+", "@", "\t", "\r"):
        return "'" + text  # a name that a spreadsheet would run as a formula
    return text
