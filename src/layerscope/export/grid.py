"""Blocks that results are printed from: tables of cells, and lines of text.

A result gives its blocks once; `render` prints them in every form. A narrow terminal gets the short
texts of cells, then fewer columns, and only then shortened names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from layerscope.escaping import visible
from layerscope.export.text import Style, plain

GAP = "  "
INDENT = " " * 5
LEAST = 4  # characters that a shortened column keeps


class Cell(Struct, frozen=True):
    """A text and its alignment, the text for a narrow terminal, and the value for csv."""

    text: str
    left: bool = False
    short: str = ""  # "": the text
    value: int | float | str | None = None  # None: the text
    drop: int = 0  # of a title: a narrow terminal leaves out the highest first, never 0


def named(text: str, drop: int = 0) -> Cell:
    """A left-aligned cell."""
    return Cell(text, True, drop=drop)


Rows = Sequence[Sequence[Cell]]


class Grid(Struct, frozen=True):
    """A table: titles in the first row, and a text under some rows."""

    rows: Rows
    below: Sequence[str] = ()  # by row
    title: str = ""
    names: Sequence[str] = ()  # of columns in csv and data frames; (): the titles
    folds: bool = False  # in HTML a reader opens it
    totals: int = 0  # rows at the end that are sums
    in_csv: bool = True  # the first such table is the csv and the data frame


class Lines(Struct, frozen=True):
    """Lines beside a table: a heading, sentences, or stamps and notes."""

    lines: Sequence[str]
    role: Literal["head", "list", "stamp"] = "stamp"


Blocks = Sequence[Grid | Lines]


def lay_out(
    rows: Rows, width: int | None = None, style: Style = plain, below: Sequence[str] = ()
) -> str:
    """The rows under a header and a rule, with the texts of `below` under their rows."""
    chosen = fitting([[_visible(cell) for cell in row] for row in rows], width)
    widths = _fitted(_widths(chosen), width)
    lines = []
    for n, row in enumerate(chosen):
        lines.append(style(_line(row, widths), "layer" if n else "head"))
        if n == 0:
            lines.append(style("─" * _sum(widths), "rule"))
        elif n < len(below) and below[n]:
            lines += [style(line, "note") for line in _broken(visible(below[n]), width)]
    return "\n".join(lines) + "\n"


def fitting(rows: Rows, width: int | None) -> Rows:
    """The rows, if they do not fit with short texts, and if that does not do, fewer columns."""
    if width is None or _sum(_widths(rows)) <= width:
        return rows
    rows = [[Cell(cell.short or cell.text, cell.left, drop=cell.drop) for cell in row]
            for row in rows]  # fmt: skip
    while _sum(_widths(rows)) > width:
        ranks = [cell.drop for cell in rows[0]]
        if not any(ranks):
            break
        last = len(ranks) - 1 - ranks[::-1].index(max(ranks))
        rows = [[*row[:last], *row[last + 1 :]] for row in rows]
    return rows


def _visible(cell: Cell) -> Cell:
    if cell.text.isprintable() and cell.short.isprintable():
        return cell
    return Cell(visible(cell.text), cell.left, visible(cell.short), cell.value, cell.drop)


def _widths(rows: Rows) -> list[int]:
    return [max(len(cell.text) for cell in column) for column in zip(*rows, strict=True)]


def _sum(widths: list[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _fitted(widths: list[int], width: int | None) -> list[int]:
    """Column widths that fit; the widest column is shortened first."""
    widths = list(widths)
    while width is not None and _sum(widths) > width and max(widths) > LEAST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _line(row: Sequence[Cell], widths: list[int]) -> str:
    texts = []
    for cell, width in zip(row, widths, strict=True):
        text = cell.text if len(cell.text) <= width else cell.text[: width - 1] + "…"
        texts.append(text.ljust(width) if cell.left else text.rjust(width))
    return GAP.join(texts).rstrip()


def _broken(text: str, width: int | None) -> list[str]:
    """The text under a row, wrapped and indented."""
    from textwrap import wrap

    indent = INDENT if width is None or width >= 60 else "  "
    room = max((width or 100) - len(indent), 20)
    return [indent + line for line in wrap(text, room)]
