"""The audit of a document: every table in it, in the order of the document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module

from msgspec.structs import replace

from layerscope.audit.check import audit_sheet
from layerscope.audit.findings import Audit, AuditedTable, Finding
from layerscope.audit.sheet import Sheet, sheet_of
from layerscope.documents import reader
from layerscope.documents.types import Cell, Table
from layerscope.errors import NoTable, UsageError

# notations whose text is no table with a heading; each has `read(lines)`
READERS = ("matconvnet",)
SheetAudit = Callable[[Sheet, int], tuple[AuditedTable, list[Finding]]]


def tables_of(text: str) -> tuple[Table, ...]:
    """All tables of a document; lines that a notation reads are not read again as a table."""
    lines = reader.BREAK.split(text)  # as the reader counts lines, and editors do
    found: list[Table] = []
    for name in READERS:
        read: Callable[[Sequence[str]], tuple[Table, ...]] = import_module(
            f"layerscope.notations.{name}"
        ).read
        for table in read(lines):
            found.append(table)
            for number in _lines(table):
                lines[number - 1] = ""
    found += reader.read("\n".join(lines))
    return tuple(sorted(found, key=lambda table: table.line))


def _lines(table: Table) -> Iterator[int]:
    yield from {cell.line for row in (table.heading, *table.rows) for cell in row.cells}


def sheets_of(text: str) -> tuple[Sheet, ...]:
    """The tables of layers in a document."""
    return tuple(s for s in map(sheet_of, tables_of(text)) if s is not None)


def audit_text(
    text: str, name: str, table: int | None = None, check: SheetAudit = audit_sheet
) -> Audit:
    """The findings in a text; of one table if its number is given. `check` audits one sheet."""
    sheets = sheets_of(text)
    if not sheets:
        raise NoTable(f"{name}: no table of layers: no table has two headings that are known")
    if table is not None and not 1 <= table <= len(sheets):
        raise UsageError(f"{name}: table {table}, and the document has {len(sheets)}")
    tables: list[AuditedTable] = []
    findings: list[Finding] = []
    lines = reader.BREAK.split(text)
    for number, sheet in enumerate(sheets, 1):
        if table is None or number == table:
            audited, found = check(sheet, number)
            tables.append(replace(audited, number=number, title=sheet.table.title, document=name))
            findings += [
                replace(finding, position=position(sheet, finding, lines), document=name)
                for finding in found
            ]
    return Audit(name, tuple(tables), tuple(findings))


def cell_of(sheet: Sheet, finding: Finding) -> Cell | None:
    """The cell that a finding is about; the first of its row if it is about the row."""
    heading = sheet.table.heading.cells
    if finding.kind == "heading":
        return next((cell for cell in heading if cell.text == finding.column), None)
    columns = [n for n, cell in enumerate(heading) if cell.text == finding.column]
    if finding.kind == "layout":
        columns = [0]
    found = [
        row.cells[n]
        for row in sheet.rows
        for n in columns
        if n < len(row.cells) and row.cells[n].line == finding.line and row.label == finding.row
    ]
    exact = [cell for cell in found if cell.text == finding.printed]
    within = [cell for cell in found if finding.printed in cell.text]
    return next(iter([*exact, *within, *found]), None)


def position(sheet: Sheet, finding: Finding, lines: Sequence[str]) -> int:
    """Where the printed text of a finding begins in its line; 0 if its cell is not found."""
    if finding.position:
        return finding.position
    cell = cell_of(sheet, finding)
    if cell is None:
        return 0
    line = lines[cell.line - 1] if cell.line <= len(lines) else ""
    at = line.find(finding.printed, cell.column - 1) if finding.printed else -1
    return at + 1 if 0 <= at < cell.column - 1 + len(cell.text) else cell.column
