"""Tables of fixed-width text, as torchsummary, Keras, torchinfo, pandas and X-CUBE-AI print them.

Columns are separated where a rule of several groups of dashes has gaps; otherwise between two
headings, where the fewest rows have text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from itertools import accumulate, pairwise

from msgspec import Struct
from msgspec.structs import replace

from layerscope.documents.edited import in_document, without_tabs
from layerscope.documents.headings import meaning_of
from layerscope.documents.rows import is_dots
from layerscope.documents.text_headings import (
    FENCE,
    LONGEST,
    PHRASE,
    SUMMARY,
    TOKEN,
    Span,
    heading_of,
    parts_of,
)
from layerscope.documents.types import Cell, Row, Table

WRAPPED = 20_000  # characters of a cell that has several lines
LINES = 3  # of most rows of a table with blank lines between rows
RULE = re.compile(r"\s*(?:-{3,}|={3,}|_{3,}|─{3,}|━{3,}|═{3,}|\*{5,}|~{5,})\s*")
GROUPS = re.compile(r"\s*(?:-+|=+|─+|━+)(?:\s+(?:-+|=+|─+|━+))+\s*")
CLOSING = re.compile(r"\s*[^\s:|][^:|]{0,40}:\s")  # label: text, below the last rule
ARROW = re.compile(r"\S\s+->\s+\S")  # input -> output of Darknet's log


class _Frame(Struct, frozen=True):
    """The columns of a table: the headings and the positions that separate them."""

    heading: tuple[Cell, ...]
    cuts: tuple[int, ...]
    name: int  # the column of the first heading that is recognised


class _Body(Struct, frozen=True):
    """Lines of the rows by number from 0, with the rules between them."""

    rows: tuple[int, ...]
    left_out: tuple[int, ...]
    end: int
    below: frozenset[int] = frozenset()  # rows behind a blank line, if nearly every row is


def tables(lines: Sequence[str]) -> Iterator[Table]:
    """The tables of fixed-width text, in the order of the document."""
    tabbed = {number: without_tabs(line) for number, line in enumerate(lines) if "\t" in line}
    shown = [tabbed[n].text if n in tabbed else line for n, line in enumerate(lines)]
    for table in _tables(shown):
        yield in_document(table, tabbed)


def _tables(lines: Sequence[str]) -> Iterator[Table]:
    heads = [heading_of(line) if "  " in line.strip() else None for line in lines]
    at = 0
    while at < len(lines):
        head = heads[at]
        if head is None:
            at += 1
            continue
        if head[-1].text == "\\":
            found, end = _continued(lines, heads, at)
        else:
            found, end = _table(lines, heads, at)
        if found is not None:
            yield found
        at = max(end, at + 1)


def _table(
    lines: Sequence[str], heads: Sequence[tuple[Span, ...] | None], at: int
) -> tuple[Table | None, int]:
    """The table below a heading, and the number of the line behind it."""
    head = heads[at] or heading_of(lines[at])
    if head is None:
        return None, at + 1
    named, start = _index_name(lines, at, head)
    body = _body(lines, heads, start)
    spans = _spans(lines, at)
    frame = _ruled(head, at, spans) if spans else _frame(lines, body, (at, head), named)
    rows, fitting, last = _rows(lines, body, frame)
    if not rows or 2 * fitting < len(rows) or _is_log(lines, body):
        return None, at + 1
    heading = Row(at + 1, frame.heading)
    left_out = tuple(number + 1 for number in body.left_out if number < last)
    return Table("text", at + 1, heading, tuple(rows), "", last, left_out), last


def _is_log(lines: Sequence[str], body: _Body) -> bool:
    """Whether the rows are those of Darknet's log, which has a reader of its own."""
    arrows = sum(ARROW.search(lines[number]) is not None for number in body.rows[:100])
    return 3 * arrows > min(len(body.rows), 100)


def _index_name(lines: Sequence[str], at: int, head: Sequence[Span]) -> tuple[Cell | None, int]:
    """The name of pandas' index, alone in the line below the headings and left of them."""
    after = lines[at + 1] if at + 1 < len(lines) else ""
    phrase = PHRASE.fullmatch(after.strip()) if len(after) <= LONGEST else None
    if phrase is None or meaning_of(phrase[0]) is None:
        return None, at + 1
    start = len(after) - len(after.lstrip())
    if start + len(phrase[0]) > head[0].start:
        return None, at + 1
    return Cell(phrase[0], at + 2, start + 1), at + 2


def _body(lines: Sequence[str], heads: Sequence[tuple[Span, ...] | None], start: int) -> _Body:
    """The lines below a heading that may be its rows."""
    rows: list[int] = []
    left_out: list[int] = []
    spaced: set[int] = set()
    ruled, closed, at = False, False, start
    while at < len(lines):
        line = lines[at]
        if RULE.fullmatch(line) or GROUPS.fullmatch(line):
            closed = bool(rows)
            ruled = ruled or not rows
        elif not line.strip():
            after = lines[at + 1] if at + 1 < len(lines) else ""
            if closed or not ruled or not after.strip() or not PHRASE.search(after):
                break
        elif FENCE.match(line) or heads[at] is not None or SUMMARY.match(line):
            break
        elif is_dots(line):
            left_out.append(at)
        elif _is_behind(line, closed, ruled):
            break
        else:
            closed = False
            rows.append(at)
            if at > start and not lines[at - 1].strip():
                spaced.add(at)
        at += 1
    below = frozenset({*rows[:1], *spaced}) if _is_spaced(rows, spaced) else frozenset()
    return _Body(tuple(rows), tuple(left_out), at, below)


def _is_spaced(rows: Sequence[int], spaced: Set[int]) -> bool:
    """Whether blank lines separate the rows, most of which have at most three lines."""
    starts = [n for n, at in enumerate(rows) if not n or at in spaced]
    sizes = [end - start for start, end in pairwise([*starts, len(rows)])]
    return len(spaced) > 1 and 2 * sum(size <= LINES for size in sizes) > len(sizes)


def _is_behind(line: str, closed: bool, ruled: bool) -> bool:
    """Whether a line is text behind the table: a sentence, or a label below the last rule."""
    if (closed or not ruled) and "  " not in line.strip():
        return True
    return closed and CLOSING.match(line) is not None


def _spans(lines: Sequence[str], at: int) -> list[tuple[int, int]]:
    """The groups of dashes of the rule below or above a heading; empty without several."""
    for near in (at + 1, at - 1):
        if 0 <= near < len(lines) and GROUPS.fullmatch(lines[near]):
            return [match.span() for match in TOKEN.finditer(lines[near])]
    return []


def _ruled(head: Sequence[Span], at: int, spans: Sequence[tuple[int, int]]) -> _Frame:
    cuts = tuple(start for start, _ in spans[1:])
    cells = [Cell("", at + 1, start + 1) for start, _ in spans]
    for part in head:
        for match in TOKEN.finditer(part.text):
            start = part.start + match.start()
            column = bisect_right(cuts, start)
            before = cells[column]
            text = f"{before.text} {match[0]}" if before.text else match[0]
            cells[column] = Cell(text, at + 1, before.column if before.text else start + 1)
    cells = [replace(cell, text="") if cell.text == "|" else cell for cell in cells]
    return _Frame(tuple(cells), cuts, _first_named(cells))


def _first_named(cells: Sequence[Cell]) -> int:
    """The column of names, else the first that is recognised."""
    meanings = [meaning_of(cell.text) for cell in cells]
    names = [n for n, heading in enumerate(meanings) if heading and heading.meaning == "name"]
    return next(iter(names), next((n for n, heading in enumerate(meanings) if heading), 0))


def _frame(
    lines: Sequence[str], body: _Body, head: tuple[int, Sequence[Span]], named: Cell | None
) -> _Frame:
    """Columns cut between the headings, where the fewest rows have text."""
    at, parts = head
    edges: Counter[int] = Counter()
    for number in body.rows:
        for match in PHRASE.finditer(lines[number], 0, LONGEST):
            edges[match.start()] += 1
            edges[match.end()] -= 1
    cover = list(accumulate(edges[n] for n in range(parts[-1].end + 1)))
    cuts = [_cut(cover, left.end, right.start) for left, right in pairwise(parts)]
    cells = [Cell(part.text, at + 1, part.start + 1) for part in parts]
    index = _index_cut(cover, parts[0].start, len(body.rows))
    if index:
        cells = [named or Cell("", at + 1, 1), *cells]
        cuts = [index, *cuts]
    return _Frame(tuple(cells), tuple(cuts), _first_named(cells))


def _cut(cover: Sequence[int], start: int, end: int) -> int:
    """The middle of the widest run of positions that the fewest rows cover."""
    least = min(cover[start:end])
    best, run = (0, start), 0
    for at in range(start, end + 1):
        if at < end and cover[at] == least:
            run += 1
            continue
        best = max(best, (run, (2 * at - run + 1) // 2))
        run = 0
    return best[1]


def _index_cut(cover: Sequence[int], end: int, rows: int) -> int:
    """The end of a column without a heading left of the first; 0 where there is none."""
    first = next((at for at in range(end) if cover[at]), end)
    blank = [at for at in range(first, end) if not cover[at]]
    if not blank or 2 * max(cover[: blank[0]], default=0) < rows:
        return 0
    return _cut(cover, blank[0], end)


def _rows(lines: Sequence[str], body: _Body, frame: _Frame) -> tuple[list[Row], int, int]:
    """The rows, how many of them fit the columns, and the number of the last line."""
    rows: list[Row] = []
    fitting, last = 0, 0
    for number in body.rows:
        cells, fits = _cells(lines[number], number + 1, frame)
        filled = [n for n, cell in enumerate(cells) if cell.text]
        if not fits and "  " not in lines[number].strip():
            break  # a sentence
        last = number + 1
        inside = body.below and number not in body.below and len(filled) < len(cells)
        if rows and (inside or _wraps(rows[-1], cells, filled, frame)):
            rows[-1] = _joined(rows[-1], cells, frame.name if inside else -1)
            continue
        rows.append(Row(number + 1, cells))
        fitting += fits and len(filled) > 1
    return rows, fitting, last


def _cells(line: str, number: int, frame: _Frame) -> tuple[tuple[Cell, ...], bool]:
    """The cells of a row, and whether each word is in one column."""
    words = [(match.start(), match.end()) for match in TOKEN.finditer(line)]
    columns: list[list[int]] = [[] for _ in frame.heading]  # start and end of each
    fits = True
    for start, end in words:
        column = bisect_right(frame.cuts, start)
        if column < len(frame.cuts) and end > frame.cuts[column]:
            fits = False
            if end - frame.cuts[column] > frame.cuts[column] - start:
                column += 1
        columns[column] = [columns[column][0] if columns[column] else start, end]
    if not fits:
        phrases = [list(match.span()) for match in PHRASE.finditer(line)]
        if len(phrases) == len(frame.heading):
            columns, fits = phrases, True
    starts = (0, *frame.cuts)
    cells = tuple(
        Cell(line[span[0] : span[1]], number, span[0] + 1) if span else Cell("", number, at + 1)
        for span, at in zip(columns, starts, strict=True)
    )
    return tuple(replace(c, text="") if c.text == "|" else c for c in cells), fits


def _wraps(above: Row, cells: Sequence[Cell], filled: Sequence[int], frame: _Frame) -> bool:
    """Whether a line continues cells of the row above it."""
    if len(filled) == len(cells) or any(len(above.cells[n].text) > WRAPPED for n in filled):
        return False
    if len(filled) == 1 and filled[0] != frame.name and frame.name not in filled and filled[0]:
        return True
    return all(
        _is_open(above.cells[n].text) or (above.cells[n].text and cells[n].text.startswith("("))
        for n in filled
    ) and bool(filled)


def _is_open(text: str) -> bool:
    """Whether a parenthesis in a cell is not closed."""
    return text.count("(") + text.count("[") > text.count(")") + text.count("]")


def _joined(above: Row, cells: Sequence[Cell], broken: int) -> Row:
    """A row with the line below it; words of the column `broken` are broken anywhere.

    Keras, whose rows have such a column, breaks long numbers as well.
    """
    found = []
    for n, (top, cell) in enumerate(zip(above.cells, cells, strict=True)):
        if not (top.text and cell.text):
            found.append(cell if cell.text else top)
            continue
        glue = (
            _separator_after(top.text) if n != broken else " " if cell.text.startswith("(") else ""
        )
        number = top.text.isdecimal() and cell.text.isdecimal() and top.column == cell.column
        glue = "" if number and broken >= 0 else glue
        full = len(top.text) > WRAPPED
        found.append(top if full else replace(top, text=f"{top.text}{glue}{cell.text}"))
    return Row(above.line, tuple(found))


def _separator_after(text: str) -> str:
    """Keras breaks a word inside parentheses anywhere; other lines end with a word."""
    return "" if _is_open(text) and not text.endswith(",") else " "


def _continued(
    lines: Sequence[str], heads: Sequence[tuple[Span, ...] | None], at: int
) -> tuple[Table | None, int]:
    r"""A table that pandas broke into blocks of columns; \ ends a heading where more follow."""
    whole: Table | None = None
    while at < len(lines):
        line = lines[at]
        more = line.rstrip().endswith("\\")
        kept = line.rstrip().removesuffix("\\") if more else line
        block, end = _block(lines, heads, at, kept)
        if block is None or (whole is not None and not _same_rows(whole, block)):
            return whole, at if whole else at + 1
        whole = block if whole is None else _beside(whole, block)
        if not more:
            return whole, end
        at = next((n for n in range(end, min(end + 3, len(lines))) if lines[n].strip()), end)
    return whole, at


def _block(
    lines: Sequence[str], heads: Sequence[tuple[Span, ...] | None], at: int, kept: str
) -> tuple[Table | None, int]:
    """One block of columns; its heading needs one heading that is recognised."""
    parts = tuple(
        part
        for match in PHRASE.finditer(kept, 0, LONGEST)
        for part in parts_of(Span(match[0], match.start(), match.end()))
    )
    if not any(meaning_of(part.text) for part in parts):
        return None, at + 1
    named, start = _index_name(lines, at, parts)
    body = _body(lines, heads, start)
    frame = _frame(lines, body, (at, parts), named)
    rows, fitting, last = _rows(lines, body, frame)
    if not rows or 2 * fitting < len(rows):
        return None, at + 1
    return Table("text", at + 1, Row(at + 1, frame.heading), tuple(rows), "", last), last


def _same_rows(left: Table, right: Table) -> bool:
    firsts = [[row.cells[0].text for row in table.rows] for table in (left, right)]
    return firsts[0] == firsts[1]


def _beside(left: Table, right: Table) -> Table:
    return replace(
        left,
        heading=replace(left.heading, cells=left.heading.cells + right.heading.cells[1:]),
        rows=tuple(
            replace(one, cells=one.cells + two.cells[1:])
            for one, two in zip(left.rows, right.rows, strict=True)
        ),
        last=right.last,
    )
