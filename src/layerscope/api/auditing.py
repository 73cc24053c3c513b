"""The tables of a document checked: `audit`."""

from __future__ import annotations

from os import PathLike, fspath
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerscope.api.networks import analyze, check_numbers
from layerscope.conventions import convention
from layerscope.errors import FormatError, UsageError
from layerscope.graph import Graph
from layerscope.report import Report

if TYPE_CHECKING:
    from layerscope.auditing.document import SheetAudit
    from layerscope.auditing.findings import Audit


def audit(
    document: str | PathLike[str] | None = None,
    *,
    text: str | None = None,
    table: int | None = None,
    against: str | PathLike[str] | Graph | Report | None = None,
    like: str | None = None,
) -> Audit:
    """The conventions of the tables in a document, and the cells that contradict them.

    - `document`: a file; `text`: the text itself.
    - `table`: the number of the one table to audit.
    - `against`: a network whose figures the tables should have.
    - `like`: the convention that figures are counted by, with `against`.
    """
    if (document is None) == (text is None):
        raise UsageError("expected either a document or a text")
    if isinstance(document, str) and "\n" in document:
        raise UsageError("the name of a document has a line end; give a text as text=…")
    check_numbers({"table": table}, ())
    name = "text" if document is None else fspath(document)
    return audit_document(name, table, audit_check(against, like), text)


def audit_check(
    against: str | PathLike[str] | Graph | Report | None, like: str | None
) -> SheetAudit:
    """What audits one table: by itself, or against a network."""
    from layerscope.auditing.check import audit_sheet
    from layerscope.conventions import CONVENTIONS

    if against is None:
        if like is not None:
            raise UsageError("like needs a network to compare with: against")
        return audit_sheet
    from layerscope.auditing.against import Checker

    names = CONVENTIONS if like is None else (like,)
    rules = {name: convention(name) for name in names}
    report = against if isinstance(against, Report) else analyze(against)
    return Checker({name: replace(report, convention=each) for name, each in rules.items()})


def audit_document(
    name: str, table: int | None, check: SheetAudit, text: str | None = None
) -> Audit:
    """The audit of a file, or of a text with that name."""
    from layerscope.auditing.against import Checker
    from layerscope.auditing.document import audit_text
    from layerscope.documents.reader import load as read_text
    from layerscope.formats.sources import check_file

    before = check.rows if isinstance(check, Checker) else 0
    if text is None:
        check_file(name)
        try:
            text = read_text(name)
        except OSError as error:
            raise FormatError(f"{name}: {error.strerror}") from None
    found = audit_text(text, name, table, check)
    if isinstance(check, Checker) and check.rows == before:
        raise FormatError(f"{name}: no row is a layer of {check.name}, by name, kind or order")
    return found
