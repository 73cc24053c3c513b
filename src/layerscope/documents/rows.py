"""A table from its rows: which of them is the heading, and which stand for rows left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from layerscope.documents.headings import meaning_of
from layerscope.documents.types import Form, Row, Table

TOP = 3  # rows among which the heading may be
BETWEEN = 3  # lines that are no rows: `[yolo] params: ...`, warnings of another program
NUMBERED = re.compile(r"\s*(\d{1,7})\s+[A-Za-z_]+")
LONGEST = 300  # characters of a numbered row
DOTS = re.compile(r"[\s.…⋮⋯︙|:]*(?:\.{2,}|[…⋮⋯︙]|(?<!\S):(?!\S))[\s.…⋮⋯︙|:]*")


def recognised(texts: Iterable[str]) -> int:
    """How many of some headings have a meaning."""
    return sum(meaning_of(text) is not None for text in texts)


def is_dots(line: str) -> bool:
    """Whether a line stands for rows that are left out."""
    return len(line) < 1_000 and DOTS.fullmatch(line) is not None


def table_of(form: Form, rows: Sequence[Row], last: int, title: str = "") -> Table | None:
    """The table of some rows, whose heading is the one of the first with most meanings."""
    counts = [recognised(cell.text for cell in row.cells) for row in rows[:TOP]]
    if not counts:
        return None
    at = counts.index(max(counts))
    body, left_out = [], []
    for row in rows[at + 1 :]:
        if is_dots(" ".join(cell.text for cell in row.cells if cell.text)):
            left_out.append(row.line)
        elif any(cell.text for cell in row.cells):
            body.append(row)
    if len(rows[at]) < 2 or not body:
        return None
    return Table(form, rows[at].line, rows[at], tuple(body), title, last, tuple(left_out))


def goes_on(lines: Sequence[str], at: int, last: str) -> bool:
    """Whether a line that is no row stands between a row, by its number, and the next one."""
    if not last.removeprefix("-").isdecimal():
        return False
    for line in lines[at + 1 : at + 1 + BETWEEN]:
        match = NUMBERED.match(line[:LONGEST])
        if match is not None:
            return 0 < int(match[1]) - int(last) <= 2
    return False
