"""A document with its wrong cells corrected: cells whose right text is certain, and nothing else.

Every correction is audited again. One that is still a finding is written another way, and left as
it was if no way is right.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct

from layerscope.auditing.check import audit_sheet
from layerscope.auditing.document import SheetAudit, Spots, audit_text, spots_of
from layerscope.auditing.findings import Audit, Finding
from layerscope.auditing.torchstat import is_torchstat
from layerscope.auditing.written import rewritten, texts
from layerscope.documents.headings import meaning_of
from layerscope.sheets.alignment import LABELLED
from layerscope.sheets.sheet import Sheet

ROUNDS = 16  # audits of the corrected document
NEAR = 50  # rows whose cells show how a column writes figures
ENDS = re.compile(r"(\r\n|\r|\n)")
EDGES = "|│┃,;\t&<>"  # signs around a cell that is empty
POOL = re.compile(r"(?:max|avg|average)?[ _-]?pool(?:ing)?", re.IGNORECASE)
UNCERTAIN = "its right text is not certain"
OTHERS = "other values agree with the other cells as well"
UNWRITTEN = "no way to write it was found"
CONTRADICTED = "another cell contradicts what it should be"
LATER = "it is a finding only after the other changes"
Key = tuple[int, int, str, str]  # table, line, row and column of a cell


class CellChange(Struct, frozen=True):
    """A cell that was corrected."""

    finding: Finding
    printed: str
    written: str


class Fixes(Struct, frozen=True):
    """The corrected text, what was changed, and the findings that are left with the reason."""

    text: str
    changes: tuple[CellChange, ...]
    left: tuple[tuple[Finding, str], ...]


class _Edit(Struct):
    """A cell in the document, and ways to write it that are still to be tried."""

    finding: Finding
    line: int
    at: int  # offset in the line
    old: str
    ways: list[str]


class _Document(Struct, frozen=True):
    """A document: lines and line ends in turn, and its tables."""

    parts: list[str]
    lines: list[str]
    spots: tuple[Spots | None, ...]  # of each table; None for a print that is no table


def fix(
    text: str, name: str, table: int | None = None, check: SheetAudit = audit_sheet,
    found: Audit | None = None,
) -> Fixes:  # fmt: skip
    """The document with every cell corrected whose right text is certain; `found` is its audit."""
    parts = ENDS.split(text)
    lines = parts[::2]
    document = _Document(parts, lines, spots_of(text))
    edits: dict[Key, _Edit] = {}
    refused: dict[Key, str] = {}
    first = found if found is not None else audit_text(text, name, table, check)
    found = first
    for round_ in range(ROUNDS):
        if not _next_edits(document, found, edits, refused, totals_alone=round_ > 0):
            break
        found = audit_text(_applied(document, edits), name, table, check)
    before = {_key(f) for f in first.findings}
    rounds = 0
    while wrong := _contradicted(found, edits, before, one=rounds < ROUNDS):
        rounds += 1
        for key, why in wrong.items():
            del edits[key]
            refused.setdefault(key, why)
        found = audit_text(_applied(document, edits), name, table, check)
    changes = sorted(edits.values(), key=lambda e: (e.line, e.at))
    done = tuple(CellChange(e.finding, e.old, e.ways[0]) for e in changes)
    left = tuple((f, refused.get(_key(f), LATER)) for f in found.findings)
    return Fixes(_applied(document, edits), done, left)


def _contradicted(
    found: Audit, edits: Mapping[Key, _Edit], before: Collection[Key], *, one: bool
) -> dict[Key, str]:
    """Corrections that are findings still, or that make a new one, and why they are dropped.

    Where a correction makes a new finding, another cell may be wrong instead of the corrected one:
    the nearest is dropped, or all of its table if that is not to be done one by one.
    """
    after = {_key(f): f for f in found.findings}
    if wrong := after.keys() & edits.keys():
        return dict.fromkeys(wrong, UNWRITTEN)
    new = [f for key, f in after.items() if key not in before and f.kind != "total"]
    if not new:
        return {}
    near = {key: abs(key[1] - new[0].line) for key in edits if key[0] == new[0].table}
    nearest = sorted(near, key=lambda key: near[key])
    return dict.fromkeys(nearest[:1] if one else nearest, CONTRADICTED)


def _key(finding: Finding) -> Key:
    return finding.table, finding.line, finding.row, finding.column


def _next_edits(
    document: _Document, found: Audit, edits: dict[Key, _Edit], refused: dict[Key, str], *,
    totals_alone: bool,
) -> bool:  # fmt: skip
    """Try the next way for cells that are still findings, and the first for new ones."""
    cells: dict[Key, list[Finding]] = {}
    for finding in found.findings:
        cells.setdefault(_key(finding), []).append(finding)
    progress, waiting = False, set()
    for key, findings in cells.items():
        if key in edits:
            edits[key].ways.pop(0)
            if not edits[key].ways:
                del edits[key]
                refused[key] = UNWRITTEN
            progress = True
        elif findings[0].kind == "total" and not _is_certain(document, found, findings[0]):
            waiting.add(key)
        elif _is_next(findings[0], refused.get(key, ""), totals_alone=totals_alone):
            edit = _edit(document, findings)
            if isinstance(edit, str):
                refused[key] = edit
            else:
                refused.pop(key, None)
                edits[key], progress = edit, True
    if not progress:
        refused.update(dict.fromkeys(waiting, "a cell above it may be wrong instead"))
    return progress


def _is_next(finding: Finding, refused: str, *, totals_alone: bool) -> bool:
    """Whether a cell is to be corrected now: a total last, and others when they are certain."""
    if refused:
        return refused == OTHERS and finding.certain and not finding.also
    return not totals_alone or finding.kind == "total"


def _is_certain(document: _Document, found: Audit, total: Finding) -> bool:
    """Whether the cells of a table are right but its total: its column is explained in full."""
    others = (f.kind for f in found.findings if f.table == total.table)
    if not {*others} <= {"total", "heading", "layout"}:
        return False
    spots = document.spots[total.table - 1]
    if spots is not None and is_torchstat(spots.sheet):
        return total.expected != ""  # it is stated where other cells show every figure above
    claims = [claim for row in spots.sheet.rows for claim in row.claims] if spots else []
    own = [c for c in claims if c.cell.line == total.line and c.cell.text == total.printed]
    for claim in own:
        like = (claim.meaning, claim.labelled, claim.heading.text)
        filled = sum(c.figure is not None and (c.meaning, c.labelled, c.heading.text) == like
                     for c in claims) - 1  # fmt: skip
        name = claim.meaning if claim.labelled else claim.heading.text
        for table in found.tables:
            for each in table.columns if table.number == total.table else ():
                if each.heading == name and each.explained == each.of == filled:
                    return True
    return False


def _edit(document: _Document, findings: Sequence[Finding]) -> _Edit | str:
    """The correction of a cell, or why it has none."""
    spots = document.spots[findings[0].table - 1]
    why = next(filter(None, map(_reason, findings)), "")
    if why:
        return why
    first = findings[0]
    spot = spots.find(first) if spots is not None else None
    if spots is None or spot is None:
        return _edit_of_line(document, first)
    if not first.column:
        return "its cell was not found in the document"
    cell, sheet = spot.cell, spots.sheet
    if sheet.rows[spot.row].line in {row.line for row in sheet.layout}:
        return "its row has too many or too few cells"
    old = cell.text if first.kind == "missing" else first.printed
    line = document.lines[cell.line - 1]
    at = spots.position(first) - 1
    if line[at : at + len(old)] != old:
        return "its text stands in the document in another way"
    others = _others(sheet, spot.row, first)
    ways = [old]
    for finding in sorted(findings, key=lambda f: f.kind != "format"):
        ways = [new for way in ways for new in _ways_to_write(way, finding, others)]
    ways = [way for way in dict.fromkeys(ways) if way != old]
    if not ways:
        return UNCERTAIN
    if sheet.table.form == "csv" and line[at - 1 : at] != '"':
        ways = [f'"{way}"' if "," in way else way for way in ways]
    if not old and not _is_empty_cell(line, at):
        return "its cell is blank space in the document"
    return _Edit(first, cell.line, at, old, ways)


def _edit_of_line(document: _Document, finding: Finding) -> _Edit | str:
    """The correction of a figure in a line that is no row of a table."""
    line, at, old = document.lines[finding.line - 1], finding.position - 1, finding.printed
    if at < 0 or line[at : at + len(old)] != old:
        return "its cell was not found in the document"
    ways = [way for way in _ways_to_write(old, finding, ()) if way != old]
    return _Edit(finding, finding.line, at, old, ways) if ways else UNCERTAIN


def _reason(finding: Finding) -> str:
    """Why a finding cannot be corrected; "" if it may be."""
    if finding.also:
        return "another cell is equally suspect"
    if finding.kind == "layout":
        return "the text does not show which cell is missing or too many"
    if finding.kind == "heading":
        return "either the heading or all its cells may be changed"
    if not finding.expected:
        return "its right value is left open"
    return "" if finding.certain else OTHERS


def _others(sheet: Sheet, at: int, finding: Finding) -> list[str]:
    """Cells of the same column, those of the nearest rows first."""
    near = sheet.rows[max(at - NEAR, 0) : at + NEAR]
    found = [
        (abs(row.at - at), claim.cell.text)
        for row in near if row.kind != "total"
        for claim in row.claims
        if claim.heading.text == finding.column and claim.figure is not None
        and claim.cell.text != finding.printed
    ]  # fmt: skip
    return [text for _, text in sorted(found, key=lambda each: each[0])[:20]]


def _ways_to_write(text: str, finding: Finding, others: Sequence[str]) -> list[str]:
    """Ways to write a cell without one finding, the likeliest first."""
    heading = meaning_of(finding.column)
    scale = heading.scale if heading else 1
    if finding.kind == "format":
        return [finding.expected]
    if finding.kind == "name":
        match = POOL.search(text) if finding.expected == "conv" else None
        return [POOL.sub(_cased("conv", match[0]), text)] if match else []
    if finding.kind == "missing":
        number = finding.expected.replace(",", "")
        if not number.isdigit():
            return []
        return texts(Fraction(number), scale, None, others, finding.ways) or [finding.expected]
    label = LABELLED.match(text)
    start = label.start(2) if label else 0
    news = rewritten(text[start:], finding.expected, scale, others, finding.ways)
    return [text[:start] + new for new in news]


def _cased(word: str, like: str) -> str:
    return word.upper() if like.isupper() else word.capitalize() if like[:1].isupper() else word


def _is_empty_cell(line: str, at: int) -> bool:
    """Whether an offset is in a blank between two edges of cells."""
    before, after = line[:at].rstrip(" "), line[at:].lstrip(" ")
    return before[-1:] in tuple(EDGES) and (not after or after[0] in EDGES)


def _applied(document: _Document, edits: dict[Key, _Edit]) -> str:
    """The text with all edits, from the end of each line to its start."""
    parts = list(document.parts)
    for edit in sorted(edits.values(), key=lambda e: (e.line, e.at), reverse=True):
        at = 2 * (edit.line - 1)
        parts[at] = _with_cell_replaced(parts, at, edit)
    return "".join(parts)


def _with_cell_replaced(parts: Sequence[str], number: int, edit: _Edit) -> str:
    """A line with a cell replaced; columns that are aligned stay so where there is room."""
    line, old, new = parts[number], edit.old, edit.ways[0]
    start, end = edit.at, edit.at + len(edit.old)
    if not old:
        return _filled(line, start, new)
    before, after = line[:start], line[end:]
    left = len(before) - len(before.rstrip(" "))
    right = len(after) - len(after.lstrip(" "))
    more = len(new) - len(old)
    flush_right = left > right
    if not more or not _is_aligned(parts, number):
        return before + new + after
    if flush_right:
        room = " " * max(left - more, 1)
        return before.rstrip(" ") + room + new + after
    room = " " * max(right - more, 1) if after else ""
    return before + new + room + after.lstrip(" ")


def _filled(line: str, at: int, new: str) -> str:
    """A line with a text in a cell that is blank."""
    start, end = len(line[:at].rstrip(" ")), len(line) - len(line[at:].lstrip(" "))
    room = end - start
    if room == 0:
        return line[:start] + new + line[end:]
    if room >= len(new) + 2:
        return line[:start] + f" {new}".ljust(room) + line[end:]
    return line[:start] + f" {new} " + line[end:]


def _is_aligned(parts: Sequence[str], number: int) -> bool:
    """Whether the columns of a line stand under those of the line above or below."""
    line = parts[number]
    near = [parts[n] for n in (number - 2, number + 2) if 0 <= n < len(parts)]
    bars = _bars(line)
    if bars:
        return any(_bars(other) == bars for other in near)
    runs = {match.end() for match in re.finditer(r" {2,}(?=\S)", line)}
    ends = {match.start() for match in re.finditer(r" {2,}", line)}
    return any(
        len(runs & {m.end() for m in re.finditer(r" {2,}(?=\S)", other)}) > 1
        or len(ends & {m.start() for m in re.finditer(r" {2,}", other)}) > 1
        for other in near
    )


def _bars(line: str) -> list[int]:
    return [n for n, sign in enumerate(line) if sign in "|│┃"]


def encoded(data: bytes, text: str) -> bytes:
    """The text in the encoding of the original, with its byte order mark."""
    if data.startswith(b"\xff\xfe"):
        return b"\xff\xfe" + text.encode("utf-16-le")
    if data.startswith(b"\xfe\xff"):
        return b"\xfe\xff" + text.encode("utf-16-be")
    return (b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b"") + text.encode()
