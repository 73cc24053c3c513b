"""A report as a Markdown table."""

from __future__ import annotations

from layerscope.escaping import markdown as escape
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
    """The module tree as a table, scopes in bold, the total last."""
    grid = table(report, view or TableView(), COLUMNS, tree=True)
    lines = [
        "| " + " | ".join(escape(column.title) for column in grid.columns) + " |",
        "|" + "|".join(" :--- " if c.kind == "text" else " ---: " for c in grid.columns) + "|",
    ]
    for row in [*grid.rows, grid.total]:
        cells = []
        for column, value in zip(grid.columns, grid.cells(row), strict=True):
            text = escape(cell_text(value, column.kind))
            if column.name == "name":
                text = f"**{text}**" if row.kind in ("scope", "total") else text
                text = "&emsp;" * row.depth + text
            cells.append(text)
        lines.append("| " + " | ".join(cells) + " |")
    if grid.note:
        lines += ["", escape(grid.note)]
    return "\n".join(lines) + "\n"
