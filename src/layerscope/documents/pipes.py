"""Tables with pipes or box characters between their cells: Markdown, with or without edges, boxes.

Rows are split here and not by Markdown's rule, which drops cells beyond the heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from layerscope.documents import figures
from layerscope.documents.rows import is_dots, recognised
from layerscope.documents.types import Cell, Form, Row, Table

BARS = "|│┃║"
BAR = re.compile(rf"\\.|[{BARS}]")
RULE = re.compile(r"[\s|+:=\-│┃║─━═┌┐└┘├┤┬┴┼╭╮╰╯┏┓┗┛┣┫┳┻╋╇╈┡┩╞╡╪╤╧╔╗╚╝╠╣╦╩╬┢┪┷┯]+")
DASHES = re.compile(r"-{2,}|={2,}|─{2,}|━{2,}|═{2,}|:-+:?|-+:")
LONE_DASH = re.compile(r"\s*\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?")  # |-|-|
FENCE = re.compile(r"\s*(?:```|~~~)")
LONGEST_RULE = 4_000  # characters of a rule of single dashes
LEAST = 2  # headings that must be recognised, where nothing else shows them
WRAPPED = 3  # lines of most rows of a box, at most


def is_rule(line: str) -> bool:
    """Whether a line only separates rows."""
    if line[:1].isalnum() or RULE.fullmatch(line) is None:
        return False
    if DASHES.search(line) is not None:
        return True
    return len(line) <= LONGEST_RULE and LONE_DASH.fullmatch(line) is not None


def split(line: str, number: int, heading: Edges | None = None) -> Row:
    """The cells of a line; the edges of the table are no cells.

    A bar at the end of a row is an edge, unless the heading has none and the row lacks a cell.
    """
    cells, start = [], 0
    bars = BARS[:1] if BARS[0] in line else BARS  # beside |, others draw a tree
    for end in [*(m.start() for m in BAR.finditer(line) if m[0] in bars), len(line)]:
        text = line[start:end]
        indent = len(text) - len(text.lstrip())
        cells.append(Cell(text.strip(), number, start + indent + 1))
        start = end + 1
    edges = edges_of(line, len(cells))
    if heading is not None and not (heading.left or heading.right):
        spare = len(cells) - heading.width
        edges = Edges(edges.left and spare > edges.right, edges.right and spare > 0, len(cells))
    if edges.left and not cells[0].text:
        cells = cells[1:]
    if edges.right and len(cells) > 1 and not cells[-1].text:
        cells = cells[:-1]
    return Row(number, tuple(cells))


class Edges(Struct, frozen=True):
    """Whether a line has a bar at either end, and its number of cells."""

    left: bool
    right: bool
    width: int


def edges_of(line: str, width: int) -> Edges:
    """The bars at the ends of a line."""
    words = line.strip()
    return Edges(words[:1] in BARS, words[-1:] in BARS, width) if words else Edges(False, False, 0)


def tables(lines: Sequence[str]) -> Iterator[Table]:
    """The tables with bars, in the order of the document."""
    start = 0
    while start < len(lines):
        if not _has_bar(lines[start]):
            start += 1
            continue
        end = start
        while end < len(lines) and _continues(lines, end):
            end += 1
        # the rule above a box has no bar, and neither has a heading's rule of dashes
        first = start - 1 if start and is_rule(lines[start - 1]) else start
        found = _table(lines[first:end], first + 1)
        if found is not None:
            yield found
        start = end


def _has_bar(line: str) -> bool:
    return any(bar in line for bar in BARS) and not FENCE.match(line)


def _continues(lines: Sequence[str], at: int) -> bool:
    """Whether a line is part of the table above: a row, a rule, or dots before a row."""
    line = lines[at]
    if _has_bar(line) or is_rule(line):
        return True
    return is_dots(line) and at + 1 < len(lines) and _has_bar(lines[at + 1])


def _table(lines: Sequence[str], first: int) -> Table | None:
    """The table of some lines; None without a rule below its heading."""
    rules = [is_rule(line) for line in lines]
    begin = next((n for n, rule in enumerate(rules) if not rule), None)
    if begin is None:
        return None
    below = next((n for n in range(begin, len(lines)) if rules[n]), None)
    if below is None:
        return _unruled(lines, first)
    top = [split(lines[n], first + n) for n in range(begin if begin else below - 1, below)]
    heading = _joined(top)
    edges = edges_of(lines[below - 1], len(heading))
    heading, edges = _with_corner(heading, edges, lines, below)
    rows = [split(line, first + n, edges) for n, line in enumerate(lines)]
    blocks, left_out = _blocks(lines, rules, below + 1)
    boxed = len(blocks) > 1 and 2 * sum(len(block) <= WRAPPED for block in blocks) > len(blocks)
    body: list[Row] = []
    for block in blocks:
        parts = [rows[n] for n in block]
        body.extend([_joined(parts)] if boxed and _is_wrapped(parts) else parts)
    drawn = any(sign in line for line in lines[begin : below + 1] for sign in BARS[1:])
    form: Form = "box" if boxed or drawn else "markdown"
    if len(heading) < 2 or not body:
        return None
    gaps = tuple(first + n for n in left_out)
    if (
        recognised(c.text for c in heading.cells)
        < LEAST
        <= recognised(c.text for c in body[0].cells)
    ):
        heading, body = body[0], body[1:]  # a converter put column numbers above it
    if not body:
        return None
    return Table(form, heading.line, heading, tuple(body), "", first + len(lines) - 1, gaps)


def _unruled(lines: Sequence[str], first: int) -> Table | None:
    """A table without a rule, if its first line has headings that are recognised."""
    heading = split(lines[0], first)
    count = recognised(cell.text for cell in heading.cells)
    edges = edges_of(lines[0], len(heading))
    rows = [split(line, first + n, edges) for n, line in enumerate(lines) if n]
    fitting = sum(len(row) == len(heading) for row in rows)
    if count < LEAST or 2 * count < len(heading) or fitting < LEAST or 2 * fitting < len(rows):
        return None
    return Table("markdown", first, heading, tuple(rows), "", first + len(lines) - 1)


def _with_corner(heading: Row, edges: Edges, lines: Sequence[str], below: int) -> tuple[Row, Edges]:
    """A heading whose first cell is empty, not its edge: its rule has a cell more, and its rows."""
    rule = split(lines[below], 0)
    bare = [line for line in lines[below + 1 :] if line.strip() and line.strip()[0] not in BARS]
    if not edges.left or edges.right or len(rule) != len(heading) + 1:
        return heading, edges
    if 2 * len(bare) <= len(lines) - below - 1:
        return heading, edges
    corner = Cell("", heading.line, 1)
    return Row(heading.line, (corner, *heading.cells)), Edges(False, False, len(rule))


def _blocks(
    lines: Sequence[str], rules: Sequence[bool], start: int
) -> tuple[list[list[int]], list[int]]:
    """Numbers of the lines between rules, and of those that stand for rows left out."""
    blocks: list[list[int]] = [[]]
    left_out = []
    for number in range(start, len(lines)):
        if rules[number]:
            blocks.append([])
        elif is_dots(lines[number]):
            left_out.append(number)
        else:
            blocks[-1].append(number)
    return [block for block in blocks if block], left_out


def _is_wrapped(parts: Sequence[Row]) -> bool:
    """Whether lines are one row of a box: those below the first leave cells empty, or end words."""
    top = parts[0].cells
    for part in parts[1:]:
        pairs = list(zip(top, part.cells, strict=False))
        if all(below.text for above, below in pairs if above.text):
            return False
        if any(figures.read(above.text) and figures.read(below.text) for above, below in pairs):
            return False
    return True


def _joined(parts: Sequence[Row]) -> Row:
    """The lines of one row of a box as one row."""
    if len(parts) == 1:
        return parts[0]
    width = max(map(len, parts))
    cells = []
    for n in range(width):
        column = [part.cells[n] for part in parts if n < len(part)]
        words = " ".join(cell.text for cell in column if cell.text)
        cells.append(Cell(words, column[0].line, column[0].column))
    return Row(parts[0].line, tuple(cells))
