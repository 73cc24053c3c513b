"""Tables with pipes or box characters between their cells: Markdown, with or without edges, boxes.

Rows are split here and not by Markdown's rule, which drops cells beyond the heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from layerscope.documents.types import Cell, Form, Row, Table

BARS = "|│┃║"
RULE = re.compile(r"[\s|+:=\-│┃║─━═┌┐└┘├┤┬┴┼╭╮╰╯┏┓┗┛┣┫┳┻╋╇╈┡┩╞╡╪╤╧╔╗╚╝╠╣╦╩╬┢┪┷┯]+")
DASHES = re.compile(r"-{2,}|={2,}|─{2,}|━{2,}|═{2,}|:-+:?|-+:")
FENCE = re.compile(r"\s*(?:```|~~~)")


def is_rule(line: str) -> bool:
    """Whether a line only separates rows."""
    return RULE.fullmatch(line) is not None and DASHES.search(line) is not None


def split(line: str, number: int) -> Row:
    """The cells of a line; the edges of the table are no cells."""
    cells, start, at = [], 0, 0
    while at <= len(line):
        if at < len(line) and line[at] == "\\":
            at += 2
            continue
        if at == len(line) or line[at] in BARS:
            text = line[start:at]
            indent = len(text) - len(text.lstrip())
            cells.append(Cell(text.strip(), number, start + indent + 1))
            start = at + 1
        at += 1
    if cells and not cells[0].text and line.lstrip()[:1] in BARS:
        cells = cells[1:]
    if len(cells) > 1 and not cells[-1].text and line.rstrip()[-1:] in BARS:
        cells = cells[:-1]
    return Row(number, tuple(cells))


def tables(lines: Sequence[str]) -> Iterator[Table]:
    """The tables with bars, in the order of the document."""
    start = 0
    while start < len(lines):
        if not _has_bar(lines[start]):
            start += 1
            continue
        end = start
        while end < len(lines) and (_has_bar(lines[end]) or is_rule(lines[end])):
            end += 1
        # the rule above a box has no bar, and neither has a heading's rule of dashes
        first = start - 1 if start and is_rule(lines[start - 1]) else start
        found = _table(lines[first:end], first + 1)
        if found is not None:
            yield found
        start = end


def _has_bar(line: str) -> bool:
    return any(bar in line for bar in BARS) and not FENCE.match(line)


def _table(lines: Sequence[str], first: int) -> Table | None:
    """The table of some lines; None without a rule below its heading."""
    rules = [number for number, line in enumerate(lines) if is_rule(line)]
    begin = next((n for n in range(len(lines)) if n not in rules), None)
    if begin is None:
        return None
    below = next((n for n in rules if n > begin), None)
    if below is None:
        return None
    boxed = sum(1 for n in rules if n > below) > 1
    blocks = _blocks(lines, rules, below, boxed)
    heading = _joined([split(lines[n], first + n) for n in range(begin, below)], boxed)
    rows = [_joined([split(lines[n], first + n) for n in block], boxed) for block in blocks]
    form: Form = "box" if boxed or any(c in lines[begin] for c in BARS[1:]) else "markdown"
    if len(heading) < 2 or not rows:
        return None
    return Table(form, heading.line, heading, tuple(rows))


def _blocks(lines: Sequence[str], rules: Sequence[int], below: int, boxed: bool) -> list[list[int]]:
    """Numbers of the lines of each row below the heading."""
    blocks: list[list[int]] = []
    fresh, ruled = True, set(rules)
    for number in range(below + 1, len(lines)):
        if number in ruled:
            fresh = True
        elif fresh or not boxed:
            blocks.append([number])
            fresh = False
        else:
            blocks[-1].append(number)
    return blocks


def _joined(parts: Sequence[Row], boxed: bool) -> Row:
    """The lines of one row of a box as one row."""
    if len(parts) == 1 or not boxed:
        return parts[-1]
    width = max(map(len, parts))
    cells = []
    for n in range(width):
        column = [part.cells[n] for part in parts if n < len(part)]
        words = " ".join(cell.text for cell in column if cell.text)
        cells.append(Cell(words, column[0].line, column[0].column))
    return Row(parts[0].line, tuple(cells))
