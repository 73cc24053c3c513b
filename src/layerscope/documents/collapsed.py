"""Keras' and torchsummary's tables whose gaps became single spaces, as web pages copy them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from layerscope.documents.types import Cell, Row, Table

HEADING = re.compile(
    r"\s*(?P<name>Layer\s?\(\s*type\s*\))\s+(?P<shape>Output\s+Shape)\s+(?P<count>Param\s+#)\s*",
    re.IGNORECASE,
)
ROW = re.compile(
    r"\s*(?P<name>[\w./-]{1,80}(?:\s?\(\s*[\w.]{1,60}\s*\)?)?)\s*"
    r"(?P<shape>[\[(]+[^\[\]()]{1,80}[\])]+)\s*(?P<count>\d[\d,]{0,20})(?:\s.{0,200})?"
)
RULE = re.compile(r"\s*[_=─━-]{3,}\s*")
WIDEST = 400  # characters of a line
PARTS = ("name", "shape", "count")


def tables(lines: Sequence[str]) -> Iterator[Table]:
    """The tables in the order of the document; other forms have read those with columns."""
    at = 0
    while at < len(lines):
        heading = _row(HEADING, lines[at], at + 1)
        at += 1
        if heading is None:
            continue
        rows: list[Row] = []
        while at < len(lines):
            row = _row(ROW, lines[at], at + 1)
            if row is not None:
                rows.append(row)
            elif lines[at].strip() and not RULE.fullmatch(lines[at]):
                break
            at += 1
        if rows:
            yield Table("text", heading.line, heading, tuple(rows), "", rows[-1].line)


def _row(pattern: re.Pattern[str], line: str, number: int) -> Row | None:
    match = pattern.fullmatch(line) if len(line) <= WIDEST else None
    if match is None:
        return None
    return Row(number, tuple(Cell(match[part], number, match.start(part) + 1) for part in PARTS))
