"""Texts of a table's cells, as tests compare them."""

from __future__ import annotations

from layerscope.documents.types import Row, Table


def texts(row: Row) -> list[str]:
    return [cell.text for cell in row.cells]


def grid(table: Table) -> list[list[str]]:
    """The heading and all rows."""
    return [texts(table.heading), *map(texts, table.rows)]


def check_positions(table: Table, document: str, heading: bool = True) -> None:
    """Every cell that has text begins where its line and column say."""
    lines = document.split("\n")
    for row in (table.heading, *table.rows) if heading else table.rows:
        for cell in row.cells:
            if cell.text:
                first = cell.text[0]
                assert lines[cell.line - 1][cell.column - 1] == first, cell
