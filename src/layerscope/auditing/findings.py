"""Findings: cells that the convention of their column does not explain, and why."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from layerscope.documents.figures import Rule
from layerscope.report.results import TableResult

FindingKind = Literal["figure", "total", "name", "missing", "unit", "format", "heading", "layout"]


class Finding(Struct, frozen=True):
    """One wrong cell; `also` are cells that are equally suspect.

    One that is not certain stays as it is where wrong cells are corrected.
    """

    table: int
    line: int
    row: str
    column: str
    kind: FindingKind
    printed: str
    expected: str
    reason: str
    also: tuple[str, ...] = ()
    position: int = 0  # of the cell's first character in its line, from 1; 0 if it is not found
    document: str = ""
    certain: bool = True  # no other text than the expected one agrees with the other cells
    ways: tuple[tuple[int, Rule], ...] = ()  # in which its column may write figures: K, rounding


class AuditedColumn(Struct, frozen=True):
    """The convention of a column, and how many of its cells it explains."""

    heading: str
    meaning: str
    explained: int
    of: int


class AuditedTable(Struct, frozen=True):
    """A table, what it describes, and its columns."""

    line: int
    network: str
    columns: tuple[AuditedColumn, ...]
    notes: tuple[str, ...] = ()
    number: int = 1  # in its document
    title: str = ""  # the last text before the table
    document: str = ""


class Audit(TableResult, frozen=True):
    """All tables of one or several documents, and all findings."""

    printed_by: ClassVar[str] = "audit"

    document: str  # several names are separated by commas
    tables: tuple[AuditedTable, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is no finding."""
        return not self.findings


def joined(audits: tuple[Audit, ...]) -> Audit:
    """The audits of several documents as one."""
    if len(audits) == 1:
        return audits[0]
    return Audit(
        ", ".join(audit.document for audit in audits),
        tuple(table for audit in audits for table in audit.tables),
        tuple(finding for audit in audits for finding in audit.findings),
        tuple(note for audit in audits for note in audit.notes),
    )
