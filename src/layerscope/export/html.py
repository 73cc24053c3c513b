"""A report as an HTML table, as shown in notebooks."""

from __future__ import annotations

from layerscope.escaping import html as escape
from layerscope.export.table import TableView, table
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


def write(report: Report, view: TableView | None = None) -> str:
    """A table with the total in its foot; every name is escaped."""
    grid = table(report, view or TableView(), COLUMNS, tree=True)
    sides = ["left" if column.kind == "text" else "right" for column in grid.columns]
    head = "".join(
        f'<th style="text-align:{side};padding:.1em .6em">{escape(column.title)}</th>'
        for side, column in zip(sides, grid.columns, strict=True)
    )
    lines = [
        '<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
        f"<caption>{escape(report.name)}</caption><thead><tr>{head}</tr></thead><tbody>"
    ]
    for row in [*grid.rows, grid.total]:
        strong = ";font-weight:bold" if row.kind in ("scope", "total") else ""
        cells = []
        for side, column, value in zip(sides, grid.columns, grid.cells(row), strict=True):
            style = f"text-align:{side};padding:.1em .6em{strong}"
            if column.name == "name":
                style += f";padding-left:{0.6 + 1.2 * row.depth:g}em"
            cells.append(f'<td style="{style}">{escape(cell_text(value, column.kind))}</td>')
        if row.kind == "total":
            lines.append('</tbody><tfoot style="border-top:1px solid">')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    if grid.note:
        span = len(grid.columns)
        lines.append(
            f'<tr><td colspan="{span}" style="padding:.1em .6em">{escape(grid.note)}</td></tr>'
        )
    return "\n".join([*lines, "</tfoot></table>"]) + "\n"
