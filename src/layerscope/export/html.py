"""A report as an HTML table, as notebooks show it."""

from __future__ import annotations

from layerscope.export.table import View, table
from layerscope.report.numbers import cell_text
from layerscope.report.types import Report

COLUMNS = (
    "name",
    "type",
    "window",
    "output",
    "params",
    "params%",
    "macs",
    "macs%",
    "memory",
    "field",
)


def write(report: Report, view: View | None = None) -> str:
    """A table with the total in its foot; every name is escaped."""
    from html import escape

    grid = table(report, view or View(), COLUMNS, tree=True)
    head = "".join(f"<th>{escape(column.title)}</th>" for column in grid.columns)
    lines = [
        f"<table><caption>{escape(report.name)}</caption><thead><tr>{head}</tr></thead><tbody>"
    ]
    for row in [*grid.rows, grid.total]:
        cells = []
        for column, value in zip(grid.columns, grid.cells(row), strict=True):
            style = f"text-align:{'left' if column.kind == 'text' else 'right'}"
            if column.name == "name":
                style += f";padding-left:{0.5 + 1.2 * row.depth:g}em"
            if row.kind != "layer":
                style += ";font-weight:bold"
            cells.append(f'<td style="{style}">{escape(cell_text(value, column.kind))}</td>')
        if row.kind == "total":
            lines.append("</tbody><tfoot>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join([*lines, "</tfoot></table>"]) + "\n"
