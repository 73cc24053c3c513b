"""Tables of a document, every cell with its line and column."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Form = Literal["markdown", "box", "html", "latex", "csv", "text", "lines"]


class Cell(Struct, frozen=True, gc=False):
    """The text of a cell, and where it begins; both count from 1."""

    text: str
    line: int
    column: int


class Row(Struct, frozen=True, gc=False):
    """The cells of a row; a row of a box may have several lines."""

    line: int
    cells: tuple[Cell, ...]

    def __len__(self) -> int:
        return len(self.cells)


class Table(Struct, frozen=True):
    """A table as it stands in the document: rows are ragged where the document's are."""

    form: Form
    line: int  # of the heading
    heading: Row
    rows: tuple[Row, ...]
    title: str = ""  # the last text before the table
    last: int = 0  # line
    left_out: tuple[int, ...] = ()  # lines of dots, which stand for rows
    totals: tuple[Row, ...] = ()  # lines below it, `Total params: 61,706`: label and figure
