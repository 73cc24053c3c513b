"""MatConvNet's network display as tables for the audit: a row per layer, as text, csv or LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from msgspec.structs import replace

from layerscope.documents.pipes import is_rule, split
from layerscope.documents.types import Cell, Row, Table

HLINE = r"\hline"
QUOTED = re.compile(r'"((?:[^"]|"")*)",?')
APART = {"|": 2, '",': 2, "&": 4, "": 0}  # lines between the blocks of a wide network


def tables(lines: Sequence[str]) -> tuple[Table, ...]:
    """The displays in a text: one table each, with a row per layer and a column per printed row.

    Their cells are between bars, in quotation marks as csv, or between the & of LaTeX.
    """
    found: list[Table] = []
    start = 0
    while start < len(lines):
        sign = sign_of(lines[start])
        end = start
        while sign and end < len(lines) and (sign in lines[end] or lines[end].strip() == HLINE):
            end += 1
        block = [
            cells_of(lines[n], n + 1, sign)
            for n in range(start, end)
            if not is_rule(lines[n]) and lines[n].strip() != HLINE
        ]
        titles = [row.cells[0] for row in block if len(row) > 1]
        if is_display({title.text for title in titles}):
            rows = _turned(block)
            again = found and start <= _last_line(found[-1]) + APART[sign]
            if again:  # the next block of the same network
                found[-1] = replace(found[-1], rows=(*found[-1].rows, *rows))
            else:
                heading = Row(titles[0].line, _named_first(titles))
                found.append(Table("text", titles[0].line, heading, rows))
        start = max(end, start + 1)
    return tuple(found)


def is_display(titles: Set[str]) -> bool:
    """Whether rows with these titles are a display, or those of its windows only."""
    sizes = {"data size"}, {"support", "num filts", "stride", "pad"}
    return {"layer", "type"} <= titles and any(each <= titles for each in sizes)


def sign_of(line: str) -> str:
    """What separates the cells of a line; "" for other lines."""
    if "|" in line:
        return "|"
    if line.startswith('"'):
        return '",'
    return "&" if "&" in line else ""


def cells_of(line: str, number: int, sign: str) -> Row:
    """The cells of a line."""
    if sign == "|":
        return split(line, number)
    if sign == '",':
        matches = QUOTED.finditer(line)
        return Row(number, tuple(Cell(m[1], number, m.start(1) + 1) for m in matches))
    cells, start = [], 0
    for part in line.replace("\\\\", "  ").split("&"):
        indent = len(part) - len(part.lstrip())
        cells.append(Cell(part.strip().replace("\\_", "_"), number, start + indent + 1))
        start += len(part) + 1
    return Row(number, tuple(cells))


def _last_line(table: Table) -> int:
    return max(cell.line for row in table.rows for cell in row.cells)


def _turned(block: Sequence[Row]) -> tuple[Row, ...]:
    """Columns of a display as rows, the name of the layer first."""
    full = [row for row in block if len(row) > 1]
    width = min(map(len, full))
    turned = [[row.cells[n] for row in full] for n in range(1, width)]
    named = next((n for n, row in enumerate(full) if row.cells[0].text == "name"), 0)
    return tuple(
        Row(cells[named].line, (cells[named], *cells[:named], *cells[named + 1 :]))
        for cells in turned
    )


def _named_first(titles: Sequence[Cell]) -> tuple[Cell, ...]:
    named = next((n for n, title in enumerate(titles) if title.text == "name"), 0)
    return (titles[named], *titles[:named], *titles[named + 1 :])
