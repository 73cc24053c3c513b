"""A report as a LaTeX table in the booktabs style."""

from __future__ import annotations

from layerscope.escaping import latex as escape
from layerscope.escaping import one_line
from layerscope.export.table import TableView, table
from layerscope.report.numbers import cell_text
from layerscope.report.types import Report

COLUMNS = ("name", "type", "window", "output", "params", "params%", "macs", "macs%")


def write(report: Report, view: TableView | None = None) -> str:
    """A tabular of the module tree; needs the LaTeX package booktabs."""
    grid = table(report, view or TableView(), COLUMNS, tree=True)
    align = "".join("l" if column.kind == "text" else "r" for column in grid.columns)
    lines = [rf"\begin{{tabular}}{{{align}}}", r"\toprule"]
    lines.append(" & ".join(escape(column.title) for column in grid.columns) + r" \\")
    lines.append(r"\midrule")
    for row in [*grid.rows, grid.total]:
        if row.kind == "total":
            lines.append(r"\midrule")
        cells = []
        for column, value in zip(grid.columns, grid.cells(row), strict=True):
            text = escape(cell_text(value, column.kind))
            if column.name == "name":
                text = r"\quad " * row.depth + (
                    rf"\textbf{{{text}}}" if row.kind in ("scope", "total") else text
                )
            cells.append(text)
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    if grid.note:
        lines.append(f"% {one_line(grid.note)}")
    return "\n".join(lines) + "\n"
