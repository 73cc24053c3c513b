"""Darknet's log of a network, read back: one line per layer, with BF = 2 x multiply-adds / 10^9."""

from __future__ import annotations

import re
from collections.abc import Sequence

from layerscope.documents.rows import goes_on
from layerscope.documents.types import Cell, Row, Table

HEADING = re.compile(
    r"^(?:.{0,80}[^\w\s])?\s*layer\s+filters\s+size.*input\s+output", re.IGNORECASE
)
SHAPE = r"\d+(?:\s*x\s*\d+){0,2}"
LAYER = re.compile(
    r"^\s*(?P<layer>\d+)\s+(?P<type>[A-Za-z_]+)"
    r"(?:[ \t]+(?P<filters>\d+)(?:\s*/\s*(?P<groups>\d+))?(?=\s+\d+\s*x\s*\d+\s*/))?"
    r"(?:\s+(?P<size>\d+\s*x\s*\d+\s*/\s*\d+)(?:\s*\([^)]*\))?)?"
    r"(?:\s+\d+x|\s+/\s*\d+|\s+p = [\d.]+)?"
    rf"(?:\s+(?P<input>{SHAPE})\s*->)?\s+(?P<output>{SHAPE})(?:\s+(?P<bf>(?:[\d.]+|\?)\s*BF(?:LOPs)?))?\s*$"
)
JOIN = re.compile(
    r"^\s*(?P<layer>\d+)\s+(?P<type>route|shortcut|res|detection|yolo|region)\b"
    r".*?(?:(?P<bf>(?<![\d.])[\d.]+)\s*BF\s*)?$",
    re.IGNORECASE,
)
TOTAL = re.compile(r"^\s*(?P<layer>Total\s+BFLOPS)\s+(?P<bf>[\d.]+)")
GROUPS = ("layer", "type", "filters", "groups", "size", "input", "output", "bf", "from")
TITLES = {"layer": "layer", "type": "type", "filters": "filters", "groups": "groups",
          "size": "size/strd", "input": "input", "output": "output", "bf": "BF",
          "from": "from"}  # fmt: skip
WIDEST = 300  # characters of a line


def read(lines: Sequence[str]) -> tuple[Table, ...]:
    """The logs in a text, one table each."""
    found: list[Table] = []
    number = 0
    while number < len(lines):
        if len(lines[number]) > WIDEST or not HEADING.match(lines[number]):
            number += 1
            continue
        start, rows = number, []
        number += 1
        while number < len(lines):
            row = _row(lines[number], number + 1)
            if row is not None:
                rows.append(row)
            elif not goes_on(lines, number, rows[-1].cells[0].text if rows else "-1"):
                break
            number += 1
        if rows:
            cells = tuple(Cell(TITLES[name], start + 1, 1) for name in GROUPS)
            found.append(Table("text", start + 1, Row(start + 1, cells), tuple(rows), last=number))
    return tuple(found)


def _row(line: str, number: int) -> Row | None:
    if len(line) > WIDEST:
        return None
    match = LAYER.match(line) or JOIN.match(line) or TOTAL.match(line)
    if match is None:
        return None
    groups = match.groupdict()
    cells = []
    for name in GROUPS:
        text = groups.get(name) or ""
        if name == "bf":
            text = re.sub("BF(?:LOPs)?", "", text).strip()
        if name == "from" and match.re is LAYER and int(groups["layer"]):
            text = str(int(groups["layer"]) - 1)  # a row takes the one above; a route names others
        column = match.start(name) + 1 if groups.get(name) else 1
        cells.append(Cell(text, number, column))
    return Row(number, tuple(cells))
