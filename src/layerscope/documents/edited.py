"""Lines that are read without tags or tabs, and where their characters are in the document."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from layerscope.documents.types import Cell, Row, Table


class Edited(Struct, frozen=True):
    """A line as it is read: pieces of the document's line, and text instead of others."""

    text: str
    at: tuple[int, ...]  # offsets in the text at which a piece begins
    source: tuple[int, ...]  # offsets of the pieces in the document's line

    def column(self, column: int) -> int:
        """The column in the document of a column of the text."""
        piece = bisect_right(self.at, column - 1) - 1
        return column if piece < 0 else self.source[piece] + column - self.at[piece]


class Editor:
    """Collects the pieces of a line."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.at: list[int] = []
        self.source: list[int] = []
        self.length = 0

    def add(self, text: str, source: int) -> None:
        """Add a piece that stands at an offset of the document's line."""
        if text:
            self.parts.append(text)
            self.at.append(self.length)
            self.source.append(source)
            self.length += len(text)

    def line(self) -> Edited:
        """The line of all pieces."""
        return Edited("".join(self.parts), tuple(self.at), tuple(self.source))


def without_tabs(line: str, width: int = 8) -> Edited:
    """A line with spaces up to the next multiple of `width` instead of each tab."""
    editor, start = Editor(), 0
    for piece in line.split("\t"):
        editor.add(piece, start)
        start += len(piece) + 1
        if start <= len(line):
            editor.add(" " * (width - editor.length % width), start - 1)
    return editor.line()


def in_document(table: Table, edited: Mapping[int, Edited]) -> Table:
    """A table with the columns of the document; `edited` has the lines by their index."""

    def moved(cell: Cell) -> Cell:
        line = edited.get(cell.line - 1)
        return cell if line is None else replace(cell, column=line.column(cell.column))

    def row_of(row: Row) -> Row:
        return replace(row, cells=tuple(map(moved, row.cells)))

    if not any(row.line - 1 in edited for row in (table.heading, *table.rows)):
        return table
    return replace(table, heading=row_of(table.heading), rows=tuple(map(row_of, table.rows)))
