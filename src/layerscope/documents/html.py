"""Tables of HTML, and the text inside <pre> without its tags.

The tags are found here and not by html.parser, whose time is cubic in the number of `<!--` that are
not closed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import accumulate

from msgspec import Struct

from layerscope.documents.edited import Edited, Editor
from layerscope.documents.rows import table_of
from layerscope.documents.types import Cell, Row, Table

TAG = re.compile(r"<(?P<close>/?)(?P<name>[a-zA-Z][a-zA-Z0-9]*)(?P<attrs>[^<>]{0,4000})>|<!--|-->")
PRE = re.compile(r"<pre\b[^<>]{0,4000}>|</pre\s*>", re.IGNORECASE)
ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
INLINE = re.compile(f"{TAG.pattern}|(?P<entity>{ENTITY.pattern})")
SPAN = re.compile(r"\b(colspan|rowspan)\s*=\s*[\"']?\s*(\d{1,4})", re.IGNORECASE)
WIDEST = 64  # columns or rows that one cell spans
SPANNED = 1_000_000  # cells of a document that spans add


def without_tags(line: str) -> Edited:
    """A line with its tags dropped and its entities decoded."""
    editor, start = Editor(), 0
    for match in INLINE.finditer(line):
        editor.add(line[start : match.start()], start)
        if match["entity"]:
            editor.add(unescape(match[0]), match.start())
        start = match.end()
    editor.add(line[start:], start)
    return editor.line()


def preformatted(lines: Sequence[str]) -> dict[int, Edited]:
    """The lines of <pre> blocks by their index, without tags."""
    found, inside = {}, False
    for number, line in enumerate(lines):
        tags = PRE.findall(line) if "<" in line else []
        if inside or any(not tag.startswith("</") for tag in tags):
            found[number] = without_tags(line)
        if tags:
            inside = not tags[-1].startswith("</")
    return found


class _Open(Struct):
    """A table whose end tag was not read yet."""

    rows: list[Row]
    row: list[Cell] | None = None
    row_line: int = 0
    cell: list[tuple[str, int]] | None = None  # pieces of text with their offsets
    cell_at: int = 0
    spans: tuple[int, int] = (1, 1)
    below: dict[int, int] = {}  # column -> rows that a cell above still covers
    caption: list[str] | None = None
    title: str = ""


class _HtmlTables:
    """The tables of a text, in the order of their end tags."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.text = "\n".join(lines)
        self.starts = [0, *accumulate(len(line) + 1 for line in lines)]
        self.open: list[_Open] = []
        self.found: list[Table] = []
        self.spare = SPANNED

    def read(self) -> list[Table]:
        """All tables, by line."""
        last_comment, comment, start = self.text.rfind("-->"), False, 0
        for match in TAG.finditer(self.text):
            if match[0] == "<!--" and match.start() < last_comment:
                comment = True
            elif match[0] == "-->":
                comment = False
            elif match["name"] and not comment:
                self._text(start, match.start())
                self._tag(match)
            else:
                continue
            start = match.end()
        if self.open:  # the text behind an unclosed cell is in it up to an empty line
            end = self.text.find("\n\n", start)
            self._text(start, len(self.text) if end < 0 else end)
        while self.open:
            self._end_table(start)
        return sorted(self.found, key=lambda table: table.line)

    def _line(self, offset: int) -> int:
        return bisect_right(self.starts, offset)

    def _text(self, start: int, end: int) -> None:
        if not self.open or start >= end:
            return
        top = self.open[-1]
        if top.cell is not None:
            top.cell.append((self.text[start:end], start))
        elif top.caption is not None:
            top.caption.append(self.text[start:end])

    def _tag(self, match: re.Match[str]) -> None:
        name, closes = match["name"].lower(), bool(match["close"])
        if name == "table" and not closes:
            self.open.append(_Open([], below={}))
        if not self.open:
            return
        top = self.open[-1]
        if name == "table" and closes:
            self._end_table(match.end())
        elif name == "tr":
            self._end_row()
            if not closes:
                top.row, top.row_line = [], self._line(match.start())
        elif name in ("td", "th"):
            self._end_cell()
            if not closes:
                if top.row is None:
                    top.row, top.row_line = [], self._line(match.start())
                top.cell, top.cell_at = [], match.end()
                spans = {key.lower(): int(n) for key, n in SPAN.findall(match["attrs"])}
                top.spans = spans.get("colspan", 1), spans.get("rowspan", 1)
        elif name == "caption":
            if closes and top.caption is not None:
                top.title, top.caption = _words("".join(top.caption)), None
            elif not closes:
                top.caption = []
        elif top.cell is not None:
            self._inline(top.cell, name, closes, match.start())

    def _inline(self, cell: list[tuple[str, int]], name: str, closes: bool, offset: int) -> None:
        """A tag inside a cell: a line break stays, and so does a power."""
        if name == "br" or (name in ("p", "div", "li") and cell and not closes):
            cell.append(("<br>", offset))
        elif name == "sup" and not closes and cell and cell[-1][0][-1:].isalnum():
            cell.append(("^", offset))

    def _end_cell(self) -> None:
        top = self.open[-1]
        if top.cell is None or top.row is None:
            return
        at = next((o + len(t) - len(t.lstrip()) for t, o in top.cell if t.strip()), top.cell_at)
        text = _words("".join(piece for piece, _ in top.cell))
        text = re.sub(r"^(?:\s*<br>)+\s*|\s*(?:<br>\s*)+$", "", text)
        line = self._line(at)
        cell = Cell(text, line, at - self.starts[line - 1] + 1)
        self._covered(top, cell)
        wide, high = (min(max(span, 1), WIDEST) for span in top.spans)
        for n in range(wide):
            if n and self.spare <= 0:
                break
            self.spare -= bool(n)
            if high > 1:
                top.below[len(top.row)] = high - 1
            top.row.append(cell if not n else Cell("", cell.line, cell.column))
        top.cell = None

    def _covered(self, top: _Open, cell: Cell) -> None:
        """Add empty cells where cells of rows above extend into this row."""
        while top.row is not None and top.below.get(len(top.row), 0) > 0 and self.spare > 0:
            self.spare -= 1
            top.below[len(top.row)] -= 1
            top.row.append(Cell("", cell.line, cell.column))

    def _end_row(self) -> None:
        self._end_cell()
        top = self.open[-1]
        if top.row:
            self._covered(top, Cell("", top.row_line, 1))
            top.rows.append(Row(top.row[0].line, tuple(top.row)))
        top.row = None

    def _end_table(self, end: int) -> None:
        self._end_row()
        top = self.open.pop()
        found = table_of("html", top.rows, self._line(max(end - 1, 0)), top.title)
        if found is not None:
            self.found.append(found)


def _words(text: str) -> str:
    return " ".join(unescape(text).split())


def tables(lines: Sequence[str]) -> Iterator[Table]:
    """The tables of HTML, in the order of the document."""
    if any("<table" in line.lower() for line in lines if "<" in line):
        yield from _HtmlTables(lines).read()
