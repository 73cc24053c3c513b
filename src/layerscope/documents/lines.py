"""Layers as lines: `NAME: [224x224x64] memory: 3.2M weights: 1,728`, or `1. [55*55] NAME: text`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from layerscope.documents.headings import meaning_of
from layerscope.documents.types import Cell, Row, Table

LONGEST = 1_000  # characters of a line
LEAST = 2  # lines in a row
BLANKS = 2  # empty lines before a line of totals
SIZE = r"\d[\d,]*(?:\s*[xX*×·]\s*\d[\d,]*){0,5}"
SHAPE = rf"[\[(]\s*{SIZE}\s*[\])]"
BULLET = r"\s*(?:[-*+•]\s+)?(?:(?P<index>\d{1,6})\s*[.):]\s*)?"
NAMED = re.compile(
    rf"{BULLET}(?P<name>[A-Za-z][\w ./+-]{{0,60}}?(?:\s?\([\w ,-]{{1,60}}\))?)"
    rf"\s*[:：]\s*(?P<shape>{SHAPE})(?P<rest>.*)"
)
SHAPED = re.compile(
    rf"{BULLET}(?P<shape>{SHAPE})\s*(?P<name>[A-Za-z][\w ./+-]{{0,60}})(?:[:：](?P<rest>.*))?"
)
TOTAL = re.compile(
    r"\s*(?P<name>total)s?\b\s*(?=[A-Za-z#]{2,20}(?: [A-Za-z#]{1,20})?\s*[:：])(?P<rest>.*)",
    re.IGNORECASE,
)
LABEL = re.compile(r"(?<![\w*])([A-Za-z#][A-Za-z_#]*(?: [A-Za-z#]+)?)\s*[:：]\s*")
FIXED = ("index", "name", "shape", "description")


class _Line(Struct, frozen=True):
    """A line of one layer: its cells by label."""

    number: int
    cells: dict[str, Cell]
    labels: dict[str, Cell]  # where the labels stand


def tables(lines: Sequence[str]) -> Iterator[Table]:
    """Runs of lines that each describe a layer, in the order of the document."""
    at = 0
    while at < len(lines):
        run: list[_Line] = []
        while at < len(lines) and (found := _line(lines[at], at + 1)) is not None:
            run.append(found)
            at += 1
        totals = list(_totals(lines, at)) if run else []
        if len(run) + len(totals) >= LEAST:
            run += totals
            at = max(at, totals[-1].number if totals else 0)
            yield _table(run)
        elif not run:
            at += 1


def _line(text: str, number: int) -> _Line | None:
    if len(text) > LONGEST or ("[" not in text and "(" not in text):
        return None
    match = NAMED.match(text) or SHAPED.match(text)
    return None if match is None else _read(match, number)


def _read(match: re.Match[str], number: int) -> _Line:
    found, labels = {}, {}
    for name, text in match.groupdict().items():
        if name != "rest" and text is not None:
            found[name] = Cell(text.strip(), number, match.start(name) + 1)
    rest, start = match["rest"] or "", match.start("rest")
    marks = [m for m in LABEL.finditer(rest) if meaning_of(m[1]) is not None]
    ends = [*(mark.start() for mark in marks[1:]), len(rest)]
    for mark, end in zip(marks, ends, strict=False):
        key = mark[1].lower()
        if key not in found:
            found[key] = Cell(rest[mark.end() : end].strip(), number, start + mark.end() + 1)
            labels[key] = Cell(mark[1], number, start + mark.start() + 1)
    before = rest[: marks[0].start()] if marks else rest
    if before.strip():
        indent = len(before) - len(before.lstrip())
        found["description"] = Cell(before.strip(), number, start + indent + 1)
    return _Line(number, found, labels)


def _totals(lines: Sequence[str], at: int) -> Iterator[_Line]:
    blank = 0
    for number in range(at, len(lines)):
        match = TOTAL.match(lines[number]) if len(lines[number]) <= LONGEST else None
        if match is not None:
            found = _read(match, number + 1)
            if found.labels:
                yield found
                continue
        blank += not lines[number].strip()
        if lines[number].strip() or blank > BLANKS:
            break


def _table(run: Sequence[_Line]) -> Table:
    """One table with a column for every label that occurs."""
    labels: dict[str, Cell] = {}
    for line in run:
        for key, cell in line.cells.items():
            labels.setdefault(key, line.labels.get(key, Cell(key, line.number, cell.column)))
    first = [key for key in ("index", "name", "shape") if key in labels]
    keys = [*first, *(key for key in labels if key not in first)]
    heading = Row(run[0].number, tuple(labels[key] for key in keys))
    rows = [
        Row(line.number, tuple(line.cells.get(key, Cell("", line.number, 1)) for key in keys))
        for line in run
    ]
    return Table("lines", run[0].number, heading, tuple(rows), "", run[-1].number)
