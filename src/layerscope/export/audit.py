"""Audits of documents: the convention of every column, and the cells that break it.

Also as JUnit XML, and as annotations of GitHub's workflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import to_builtins

from layerscope.escaping import html, json_text, one_line, visible
from layerscope.export.grid import Blocks, Cell, Grid, Lines, named

if TYPE_CHECKING:
    from layerscope.auditing.findings import Audit, AuditedTable, Finding
    from layerscope.auditing.fix import Fixes

SCHEMA = 1
TITLE = 60  # characters of a table's title in a line
PRINTED = 120  # characters of a printed cell in a line


def counted(number: int, word: str) -> str:
    """A number with its word, `1 table`, `2 tables`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def headline(audit: Audit) -> str:
    """How many findings there are, in one line."""
    names = dict.fromkeys(table.document for table in audit.tables)
    name = audit.document if len(names) < 2 else counted(len(names), "document")
    return f"{one_line(name)[-60:]}: {summary(audit)}"


def summary(audit: Audit) -> str:
    """How many findings in how many tables."""
    count, tables = len(audit.findings), counted(len(audit.tables), "table")
    return f"{counted(count, 'finding') if count else 'no findings'} in {tables}"


def blocks(audit: Audit) -> Blocks:
    """For each table its columns, findings and notes; a summary at the end."""
    found: list[Grid | Lines] = []
    several = len({table.document for table in audit.tables}) > 1
    for table in audit.tables:
        head = table_line(table)
        head = f"{one_line(table.document)}: {head}" if several else head
        found += _table(table, head, _findings_of(audit, table))
    findings = counted(len(audit.findings), "finding") if audit.findings else "no findings"
    cells = [column for table in audit.tables for column in table.columns]
    checked, explained = sum(c.of for c in cells), sum(c.explained for c in cells)
    last = (
        f"{counted(len(audit.tables), 'table')}, {explained:,} of {checked:,} figures explained, "
        f"{findings}"
    )
    return [*found, Lines([*audit.notes, last])]


def csv_blocks(audit: Audit) -> Blocks:
    """One row per column with its convention, then one per finding."""
    names = (
        "document", "table", "line", "position", "row", "column", "kind", "printed", "expected",
        "reason", "also", "explained", "of",
    )  # fmt: skip
    rows = [[named(name) for name in names]]
    for table in audit.tables:
        at = [named(table.document), _number(table.number), _number(table.line), Cell("")]
        rows += [
            [*at, named(""), named(c.heading), named("convention"), named(""), named(""),
             named(c.meaning), named(""), _number(c.explained), _number(c.of)]
            for c in table.columns
        ]  # fmt: skip
    for f in audit.findings:
        texts = (f.row, f.column, f.kind, f.printed, f.expected, f.reason, "; ".join(f.also))
        numbers = (_number(f.table), _number(f.line), _number(f.position))
        rows.append([named(f.document), *numbers, *map(named, texts), Cell(""), Cell("")])
    notes = [note for table in audit.tables for note in _notes(table)]
    return [Grid(rows, names=names), Lines([*notes, *audit.notes, headline(audit)])]


def _number(value: int) -> Cell:
    return Cell(str(value), value=value)


def _findings_of(audit: Audit, table: AuditedTable) -> list[Finding]:
    wanted = (table.document, table.number)
    return [finding for finding in audit.findings if (finding.document, finding.table) == wanted]


def table_line(table: AuditedTable) -> str:
    """A table in one line: its number, line and title, and what it describes."""
    title = one_line(table.title)
    title = title if len(title) <= TITLE else f"{title[: TITLE - 1]}…"
    about = ", ".join(part for part in (title, one_line(table.network)) if part)
    return f"table {table.number}, line {table.line}{f': {about}' if about else ''}"


def _table(table: AuditedTable, head: str, findings: Sequence[Finding]) -> Blocks:
    found: list[Grid | Lines] = []
    if table.columns:
        wrapped = [Cell(title, True, wraps=True) for title in ("column", "convention")]
        titles = [*wrapped, Cell("explained")]
        rows = [
            [named(one_line(each.heading)), named(one_line(each.meaning)),
             Cell(f"{each.explained} of {each.of}")]
            for each in table.columns
        ]  # fmt: skip
        found.append(Grid([titles, *rows], title=head))
    else:
        found.append(Lines([head, "no column of figures that can be checked"], "head"))
    if findings:
        rows = [
            [Cell(str(f.line)), named(one_line(f.row)), named(one_line(f.column)), named(f.kind)]
            for f in findings
        ]
        titles = [Cell("line"), named("row"), Cell("column", True, wraps=True), named("kind")]
        found.append(Grid([titles, *rows], ["", *map(sentence, findings)], in_csv=False))
    notes = _notes(table)
    return [*found, Lines(notes, "list")] if notes else found


def _notes(table: AuditedTable) -> list[str]:
    """The notes of a table, each once."""
    return [f"note: {one_line(note)}" for note in dict.fromkeys(table.notes)]


def sentence(finding: Finding) -> str:
    """What a cell has, what it should have, and why."""
    printed = one_line(finding.printed)
    printed = printed if len(printed) <= PRINTED else f"{printed[: PRINTED - 1]}…"
    parts = [printed or ("empty" if finding.column else "no row")]
    if finding.expected:
        parts.append(f", expected {one_line(finding.expected)}")
    parts.append(f": {one_line(finding.reason)}")
    if finding.also:
        cells = " or ".join(map(one_line, finding.also))
        parts.append(f"; equally suspect: {cells}")
    return "".join(parts)


def write_json(audit: Audit) -> str:
    """Every table with the conventions of its columns, and every finding."""
    document = {
        "kind": "audit",
        "schema": SCHEMA,
        "ok": audit.ok,
        "document": audit.document,
        "tables": [
            {
                "document": table.document,
                "number": table.number,
                "line": table.line,
                "title": table.title,
                "network": table.network,
                "columns": [to_builtins(column) for column in table.columns],
                "notes": list(dict.fromkeys(table.notes)),
            }
            for table in audit.tables
        ],
        "findings": [_finding(finding) for finding in audit.findings],
        "notes": list(audit.notes),
    }  # fmt: skip
    return json_text(document)


def _finding(finding: Finding) -> dict[str, object]:
    names = (
        "table", "line", "row", "column", "kind", "printed", "expected", "reason", "also",
        "position", "document",
    )  # fmt: skip
    return {name: getattr(finding, name) for name in names}


def write_junit(audit: Audit) -> str:
    """One test suite per table, one test case per column and per finding."""
    suites = []
    tests = failures = skipped = 0
    for table in audit.tables:
        name = html(f"{table.document}: {table_line(table)}")
        columns = [_column_case(name, c.heading, c.meaning, c.explained) for c in table.columns]
        found = [_finding_case(name, finding) for finding in _findings_of(audit, table)]
        left_out = sum("<skipped" in case for case in columns)
        suites.append(
            f'  <testsuite name="{name}" tests="{len(columns) + len(found)}" '
            f'failures="{len(found)}" errors="0" skipped="{left_out}">\n'
            f"{''.join((*columns, *found))}  </testsuite>\n"
        )
        tests += len(columns) + len(found)
        failures, skipped = failures + len(found), skipped + left_out
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="layerscope audit" tests="{tests}" failures="{failures}" errors="0" '
        f'skipped="{skipped}">\n{"".join(suites)}</testsuites>\n'
    )


def _column_case(table: str, heading: str, meaning: str, explained: int) -> str:
    """A column with a convention passes; one without is skipped, as its figures are not checked."""
    head = f'    <testcase classname="{table}" name="{html(f"column {heading}: {meaning}")}"'
    if explained:
        return f"{head}/>\n"
    return f'{head}>\n      <skipped message="{html(meaning)}"/>\n    </testcase>\n'


def _finding_case(table: str, finding: Finding) -> str:
    where = f"line {finding.line}, row {finding.row}" + (
        f", column {finding.column}" if finding.column else ""
    )
    text = html(sentence(finding))
    return (
        f'    <testcase classname="{table}" name="{html(f"{finding.kind}: {where}")}">\n'
        f'      <failure type="{finding.kind}" message="{text}">{text}</failure>\n'
        "    </testcase>\n"
    )


def write_github(audit: Audit) -> str:
    """One annotation per finding, at the file and line of its cell."""
    lines = []
    for f in audit.findings:
        at = {
            "file": f.document,
            "line": str(f.line),
            **({"col": str(f.position)} if f.position else {}),
            "title": f"{f.kind}: row {f.row}" + (f", column {f.column}" if f.column else ""),
        }
        given = ",".join(f"{name}={_property(visible(text))}" for name, text in at.items())
        lines.append(f"::error {given}::{_data(sentence(f))}\n")
    return "".join(lines)


def _data(text: str) -> str:
    """The message of a workflow command, escaped as GitHub's runner decodes it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def fix_blocks(fixes: Fixes) -> Blocks:
    """What was changed, and what could not be."""
    found: list[Grid | Lines] = []
    if fixes.changes:
        titles = [
            Cell("line"), named("row"), Cell("column", True, wraps=True),
            Cell("from", True, wraps=True), Cell("to", True, wraps=True),
        ]  # fmt: skip
        rows = [
            [Cell(str(c.finding.line)), *(named(one_line(text)) for text in (
                c.finding.row, c.finding.column, c.printed, c.written))]
            for c in fixes.changes
        ]  # fmt: skip
        found.append(Grid([titles, *rows], title=f"{counted(len(rows), 'cell')} changed"))
    if fixes.left:
        titles = [Cell("line"), named("row"), Cell("column", True, wraps=True), named("kind")]
        rows = [
            [Cell(str(f.line)), named(one_line(f.row)), named(one_line(f.column)), named(f.kind)]
            for f, _ in fixes.left
        ]
        below = [f"{sentence(f)}. Not changed: {why}" for f, why in fixes.left]
        title = f"{counted(len(rows), 'finding')} not changed"
        found.append(Grid([titles, *rows], ["", *below], title=title, in_csv=False))
    return found
