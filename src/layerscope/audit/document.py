"""The audit of a document: every table in it, in the order of the document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module

from layerscope.audit.boda import audit_boda, lines_of
from layerscope.audit.check import audit_sheet
from layerscope.audit.findings import Audit, AuditedTable, Finding
from layerscope.audit.sheet import Sheet, sheet_of
from layerscope.documents import reader
from layerscope.documents.types import Table
from layerscope.errors import FormatError, UsageError

# notations whose text is no table with a heading; each has `read(lines)`
READERS = ("matconvnet", "darknet_log")


def tables_of(text: str) -> tuple[Table, ...]:
    """All tables of a document; lines that a notation reads are not read again as a table."""
    lines = text.splitlines()
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


def audit_text(text: str, name: str, table: int | None = None) -> Audit:
    """The findings in a text; of one table if its number is given."""
    lines = text.splitlines()
    profile = audit_boda(lines, 1)
    if profile is not None:
        for number in lines_of(lines):
            lines[number - 1] = ""
    sheets = sheets_of("\n".join(lines))
    count = len(sheets) + (profile is not None)
    if not count:
        raise FormatError(f"{name}: no table of layers: no table has two headings that are known")
    if table is not None and not 1 <= table <= count:
        raise UsageError(f"{name}: table {table}, and the document has {count}")
    tables: list[AuditedTable] = []
    findings: list[Finding] = []
    if profile is not None and table in (None, 1):
        tables.append(profile[0])
        findings += profile[1]
    for number, sheet in enumerate(sheets, 1 + (profile is not None)):
        if table is None or number == table:
            audited, found = audit_sheet(sheet, number)
            tables.append(audited)
            findings += found
    return Audit(name, tuple(tables), tuple(findings))
