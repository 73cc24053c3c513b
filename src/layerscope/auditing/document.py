"""The audit of a document: every table in it, in the order of the document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module

from msgspec import Struct
from msgspec.structs import replace

from layerscope.auditing.boda import audit_boda, lines_of
from layerscope.auditing.check import audit_sheet
from layerscope.auditing.dagnn import audit_dag
from layerscope.auditing.findings import Audit, AuditedTable, Finding
from layerscope.auditing.footers import footer_findings
from layerscope.auditing.fvcore import audit_fvcore, is_fvcore
from layerscope.auditing.ptflops import audit_ptflops
from layerscope.auditing.stated import stated_findings
from layerscope.auditing.torchstat import audit_torchstat, is_torchstat
from layerscope.documents import reader
from layerscope.documents.types import Cell, Table
from layerscope.errors import NoTable, UsageError
from layerscope.limits import DOCUMENT_ROWS
from layerscope.sheets.sheet import Sheet, SheetRow, is_sheet, sheet_of

# notations whose text is no table with a heading: module and function of their tables
READERS = (("formats.document.matconvnet_tables", "tables"), ("notations.darknet_log", "read"))
Profile = tuple[AuditedTable, list[Finding]]
SheetAudit = Callable[[Sheet, int], Profile]


def tables_of(text: str) -> tuple[Table, ...]:
    """All tables of a document; lines that a notation reads are not read again as a table."""
    # as the reader counts lines, and editors do
    lines = reader.uncommented(reader.BREAK.split(text))
    found: list[Table] = []
    for module, function in READERS:
        read: Callable[[Sequence[str]], tuple[Table, ...]] = getattr(
            import_module(f"layerscope.{module}"), function
        )
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


def _parts(lines: Sequence[str]) -> tuple[Profile | None, str, list[Table]]:
    """What has rules of its own and is no table, its title, and the tables of layers."""
    profile, title = audit_boda(lines, 1), "Boda's profile"
    used = set(lines_of(lines)) if profile is not None else set()
    if profile is None and (printed := audit_ptflops(lines, 1)) is not None:
        profile, title, used = printed[:2], "ptflops' print", printed[2]
    if profile is None and (network := audit_dag(lines)) is not None:
        profile, title, used = network[:2], "DagNN", network[2]
    left = ["" if number in used else line for number, line in enumerate(lines, 1)]
    return profile, title, [each for each in tables_of("\n".join(left)) if is_sheet(each)]


def spots_of(text: str) -> tuple[Spots | None, ...]:
    """The cells of every table of a document, as audits count them; None for what is no table."""
    lines = reader.BREAK.split(text)
    profile, _, tables = _parts(lines)
    found = [Spots(sheet, lines) for sheet in map(sheet_of, tables) if sheet is not None]
    return (*([] if profile is None else [None]), *found)


def audit_text(
    text: str, name: str, table: int | None = None, check: SheetAudit = audit_sheet
) -> Audit:
    """The findings in a text; of one table if its number is given. `check` audits one sheet."""
    lines = reader.BREAK.split(text)
    profile, title, sheets = _parts(lines)
    count = len(sheets) + (profile is not None)
    if not count:
        raise NoTable(f"{name}: no table of layers: no table has two headings that are recognised")
    if table is not None and not 1 <= table <= count:
        raise UsageError(f"{name}: table {table}, and the document has {count}")
    if table is None:
        checked = sum(min(len(each.rows), DOCUMENT_ROWS.most) for each in sheets)
        several = replace(DOCUMENT_ROWS, instead="check one table of it with --table")
        several.check(checked, name)
    tables: list[AuditedTable] = []
    findings: list[Finding] = []
    if profile is not None and table in (None, 1):
        tables.append(replace(profile[0], number=1, title=title, document=name))
        findings += [
            replace(each, position=_position(each, lines), document=name) for each in profile[1]
        ]
    for at, each in enumerate(sheets):
        number = 1 + at + (profile is not None)
        sheet = sheet_of(each) if table in (None, number) else None
        if sheet is not None:
            audited, found = _audit_of(sheet, check)(sheet, number)
            end = sheets[at + 1].line if at + 1 < len(sheets) else len(lines) + 1
            # torchstat's rules for the lines below hold for a table that follows its rules
            if not is_torchstat(sheet) or any(column.explained for column in audited.columns):
                found += footer_findings(sheet, lines, end, found, number)
            tables.append(replace(audited, number=number, title=sheet.table.title, document=name))
            spots = Spots(sheet, lines if found else ())
            findings += [
                replace(finding, position=spots.position(finding), document=name)
                for finding in found
            ]
    starts = [(each.line, each.number) for each in tables]
    used = {number for each in sheets for number in _lines(each)}
    if table is None:
        stated = stated_findings(lines, used, starts)
        findings += [replace(finding, document=name) for finding in stated]
    return Audit(name, tuple(tables), tuple(findings))


def _position(finding: Finding, lines: Sequence[str]) -> int:
    """Where the printed text of a finding begins in a line of which it is not known; 0 if open."""
    if finding.position or not finding.printed:
        return finding.position
    line = lines[finding.line - 1]
    printed = re.compile(rf"(?<![\w.]){re.escape(finding.printed)}(?![\w.])")
    found = [match.start() + 1 for match in printed.finditer(line)]
    return found[0] if len(found) == 1 else 0


def _audit_of(sheet: Sheet, check: SheetAudit) -> SheetAudit:
    """What audits a sheet: tables of some programs have rules of their own."""
    own = {is_torchstat: audit_torchstat, is_fvcore: audit_fvcore}
    if check is not audit_sheet:
        return check
    return next((audit for is_own, audit in own.items() if is_own(sheet)), check)


class Spot(Struct, frozen=True):
    """The cell that a finding is about, and the number of its row; -1 for a heading."""

    cell: Cell
    row: int


class Spots:
    """Finds the cells of findings in a sheet."""

    def __init__(self, sheet: Sheet, lines: Sequence[str]) -> None:
        self.sheet = sheet
        self.lines = lines
        self.rows: dict[int, list[SheetRow]] = {}  # by line
        for row in sheet.rows:
            for line in {cell.line for cell in row.cells}:
                self.rows.setdefault(line, []).append(row)

    def find(self, finding: Finding) -> Spot | None:
        """The cell of a finding; the first of its row if it is about the row."""
        heading = self.sheet.table.heading.cells
        if finding.kind == "heading":
            return next((Spot(cell, -1) for cell in heading if cell.text == finding.column), None)
        columns = [n for n, cell in enumerate(heading) if cell.text == finding.column]
        if not finding.column:
            columns = [0]
        found = [
            Spot(row.cells[n], row.at)
            for row in self.rows.get(finding.line, ())
            for n in columns
            if n < len(row.cells) and row.cells[n].line == finding.line and row.label == finding.row
        ]
        exact = [spot for spot in found if spot.cell.text == finding.printed]
        within = [spot for spot in found if finding.printed in spot.cell.text]
        return next(iter([*exact, *within, *found]), None)

    def position(self, finding: Finding) -> int:
        """Where the printed text of a finding begins in its line; 0 if its cell is not found."""
        spot = self.find(finding)
        if finding.position or spot is None:
            return finding.position
        cell = spot.cell
        line = self.lines[cell.line - 1] if cell.line <= len(self.lines) else ""
        at = line.find(finding.printed, cell.column - 1) if finding.printed else -1
        return at + 1 if 0 <= at < cell.column - 1 + len(cell.text) else cell.column
