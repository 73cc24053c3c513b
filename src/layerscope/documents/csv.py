"""Tables of values between commas, semicolons or tabs: a whole document, or a block of one."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from layerscope.documents.rows import is_dots, recognised
from layerscope.documents.types import Cell, Row, Table

SEPARATORS = ",;\t"
LEAST = 2  # headings that must be recognised
LONGEST = 4_000  # characters of a heading
QUOTED_LINES = 20  # lines of a quoted cell
_FIELDS = {
    sign: re.compile(rf'[^\S\t\n]*"((?:[^"]|"")*)"[^\S\t\n]*(?={sign}|$)|([^{sign}]*)')
    for sign in SEPARATORS
}


def split(line: str, sign: str, number: int) -> Row:
    """The cells of a line; quotes around a cell are no part of it."""
    cells, at = [], 0
    field = _FIELDS[sign]
    starts = [0, *(m.end() for m in re.finditer("\n", line))]  # of the lines of quoted cells
    while at <= len(line):
        match = field.match(line, at)
        if match is None:
            break
        quoted = match[1] is not None
        text = match[1].replace('""', '"') if quoted else match[2]
        start = match.start(1 if quoted else 2) + len(text) - len(text.lstrip())
        above = bisect_right(starts, start) - 1
        cells.append(Cell(text.strip(), number + above, start - starts[above] + 1))
        at = match.end() + 1
    return Row(number, tuple(cells))


def tables(lines: Sequence[str]) -> Iterator[Table]:
    """The tables of separated values, in the order of the document."""
    at, fresh = 0, True  # fresh: the line is the first of a block
    while at < len(lines):
        found = _table(lines, at) if fresh and lines[at].strip() else None
        if found is not None:
            yield found
            at, fresh = found.last, True
            continue
        fresh = not lines[at].strip() or lines[at].lstrip().startswith(("```", "~~~", "#"))
        at += 1


def separator_of(line: str) -> str | None:
    """The separator of a heading of which at least two cells, and half of all, are recognised."""
    best = ("", 0)
    for sign in SEPARATORS if len(line) <= LONGEST else "":
        if sign not in line:
            continue
        cells = split(line, sign, 1).cells
        count = recognised(cell.text for cell in cells)
        if count >= LEAST and 2 * count >= len(cells) and count > best[1]:
            best = sign, count
    return best[0] or None


def _table(lines: Sequence[str], first: int) -> Table | None:
    sign = separator_of(lines[first])
    if sign is None:
        return None
    heading = split(lines[first], sign, first + 1)
    rows: list[Row] = []
    left_out: list[int] = []
    end, at, fitting = first, first + 1, 0
    while at < len(lines):
        line, size = _record(lines, at)
        if line.lstrip().startswith(("```", "~~~")):
            break
        if not line.strip():
            # a blank line before more rows of the same width
            after = lines[at + 1] if at + 1 < len(lines) else ""
            if after.count(sign) != len(heading) - 1 or separator_of(after):
                break
        elif is_dots(line.replace(sign, " ")):
            left_out.append(at + 1)
        else:
            row = split(line, sign, at + 1)
            if any(cell.text for cell in row.cells):
                rows.append(row)
                fitting += len(row) == len(heading)
                end = at + size - 1
        at += size
    if not rows or 2 * fitting < len(rows):
        return None
    return Table("csv", first + 1, heading, tuple(rows), "", end + 1, tuple(left_out))


def _record(lines: Sequence[str], at: int) -> tuple[str, int]:
    """A row, which has several lines where a quoted cell has."""
    line = lines[at]
    if line.count('"') % 2 == 0:
        return line, 1
    for size in range(2, QUOTED_LINES + 1):
        if at + size > len(lines):
            break
        if lines[at + size - 1].count('"') % 2:
            return "\n".join(lines[at : at + size]), size
    return line, 1
