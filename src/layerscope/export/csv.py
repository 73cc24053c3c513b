"""A report as csv: one row per layer, exact numbers, no totals."""

from __future__ import annotations

from io import StringIO

from layerscope.escaping import csv_cell
from layerscope.export.table import TableView, table
from layerscope.report.types import Report

COLUMNS = (
    "name", "type", "input", "output", "params", "buffers", "macs", "flops", "add", "mul", "comp",
    "div", "exp", "activations", "memory", "read", "write", "intensity", "gemm", "field",
    "field_stride", "field_offset", "status", "note",
)  # fmt: skip


def columns_for(report: Report) -> tuple[str, ...]:
    """Column names; a convention other than exact adds its own figures beside the exact ones."""
    if report.convention.name == "exact":
        return COLUMNS
    more = {"flops": "convention_ops", "activations": "convention_activations"}
    pairs = [(name, more.get(name)) for name in COLUMNS]
    return tuple(name for pair in pairs for name in pair if name)


def write(report: Report, view: TableView | None = None) -> str:
    """The table with column names in the first line."""
    import csv

    grid = table(report, view or TableView(), columns_for(report), tree=False)
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.name for column in grid.columns])
    for row in grid.rows:
        writer.writerow([csv_cell(value) for value in grid.cells(row)])
    return out.getvalue()
