"""The audit of fvcore's table: a module has the parameters and operations of the rows below it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod

from layerscope.auditing.findings import AuditedColumn, AuditedTable, Finding
from layerscope.auditing.trees import Relation, TreeCell, findings_of, span_of, sum_relation
from layerscope.documents.figures import read
from layerscope.sheets.sheet import Sheet, SheetRow

HEADINGS = ("#parameters or shape", "#flops")
SHAPE = re.compile(r"\(\s*\d{1,12}(?:\s*,\s*\d{1,12})*\s*,?\s*\)")


def is_fvcore(sheet: Sheet) -> bool:
    """Whether a table has the headings of fvcore's."""
    return {*HEADINGS, "module"} <= {cell.text.lower() for cell in sheet.table.heading.cells}


def audit_fvcore(sheet: Sheet, number: int) -> tuple[AuditedTable, list[Finding]]:
    """The findings of a table of fvcore; `number` counts the tables of the document."""
    below = _below(sheet.rows)
    headings = [cell.text for cell in sheet.table.heading.cells]
    relations: list[Relation] = []
    cells: list[TreeCell] = []
    columns: list[AuditedColumn] = []
    for column, heading in enumerate(headings):
        if heading.lower() not in HEADINGS:
            continue
        figures = {row.at: cell for row in sheet.rows if (cell := _cell(row, column, heading))}
        found = list(_sums(below, figures, exact=heading.lower() == HEADINGS[0]))
        spans = {cell.key: cell.span for cell in figures.values()}
        right = sum(relation.holds(spans) for relation in found)
        columns.append(AuditedColumn(heading, "a module is the sum of its rows", right, len(found)))
        relations += found
        cells += figures.values()
    modules = f"{len(sheet.rows)} rows of a tree"
    table = AuditedTable(sheet.table.line, modules, tuple(columns))
    return table, list(findings_of(relations, cells, number))


def _below(rows: Sequence[SheetRow]) -> dict[int, list[int]]:
    """The rows one level below each row, by the indents of their names."""
    found: dict[int, list[int]] = {}
    above: list[SheetRow] = []
    for row in rows:
        while above and above[-1].cells[0].column >= row.cells[0].column:
            above.pop()
        if above:
            found.setdefault(above[-1].at, []).append(row.at)
        above.append(row)
    return found


def _cell(row: SheetRow, column: int, heading: str) -> TreeCell | None:
    """The figure of a row; a shape of parameters counts their elements."""
    if column >= len(row.cells):
        return None
    cell = row.cells[column]
    if SHAPE.fullmatch(cell.text):
        count = Fraction(prod(map(int, re.findall(r"\d+", cell.text))))
        return TreeCell(cell.line, heading, row.label, cell.text, (count, count))
    figure = read(cell.text)
    if figure is None:
        return None
    return TreeCell(cell.line, heading, row.label, cell.text, span_of(figure))


def _sums(
    below: dict[int, list[int]], figures: dict[int, TreeCell], *, exact: bool
) -> Iterator[Relation]:
    """Sums of the rows that have rows below them.

    What a forward computes itself has no row, and neither has a parameter that is shared: a module
    may have more operations than the rows below it, and not fewer.
    """
    for at, rows in below.items():
        parts = [figures[row] for row in rows if row in figures]
        if at in figures and parts:
            yield sum_relation(figures[at], parts, more=not exact)
