"""Findings: cells that the convention of their column does not explain, and why."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

FindingKind = Literal["figure", "total", "name", "missing", "unit", "format", "heading", "layout"]


class Finding(Struct, frozen=True):
    """One wrong cell; `also` are cells that are equally suspect."""

    table: int
    line: int
    row: str
    column: str
    kind: FindingKind
    printed: str
    expected: str
    reason: str
    also: tuple[str, ...] = ()


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


class Audit(Struct, frozen=True):
    """All tables of a document and all findings."""

    document: str
    tables: tuple[AuditedTable, ...]
    findings: tuple[Finding, ...]
