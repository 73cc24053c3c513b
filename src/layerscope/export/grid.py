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
LEAST_WRAPPED = 14  # characters of a column whose texts are wrapped


class Cell(Struct, frozen=True):
    """A text and its alignment, the text for a narrow terminal, and the value for csv."""

    text: str
    left: bool = False
    short: str = ""  # "": the text
    value: int | float | str | None = None  # None: the text
    drop: int = 0  # of a title: a narrow terminal leaves out the highest first, never 0
    wraps: bool = False  # of a title: a narrow terminal breaks the texts of the column into lines


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
    wraps = [n for n, cell in enumerate(chosen[0]) if cell.wraps]
    widths = _fitted(_widths(chosen), width, wraps)
    lines = []
    for n, row in enumerate(chosen):
        role = "layer" if n else "head"
        lines += [style(_line(part, widths), role) for part in _wrapped(row, widths, wraps)]
        if n == 0:
            lines.append(style("─" * _sum(widths), "rule"))
        elif n < len(below) and below[n]:
            lines += [style(line, "note") for line in _broken(visible(below[n]), width)]
    return "\n".join(lines) + "\n"


def fitting(rows: Rows, width: int | None) -> Rows:
    """The rows, if they do not fit with short texts, and if that does not do, fewer columns."""
    if width is None or _sum(_widths(rows)) <= width:
        return rows
    rows = [[Cell(cell.short or cell.text, cell.left, drop=cell.drop, wraps=cell.wraps)
             for cell in row] for row in rows]  # fmt: skip
    wrapped = sum(_wrappable(rows))
    while _sum(_widths(rows)) - wrapped > width:
        ranks = [cell.drop for cell in rows[0]]
        if not any(ranks):
            break
        last = len(ranks) - 1 - ranks[::-1].index(max(ranks))
        rows = [[*row[:last], *row[last + 1 :]] for row in rows]
    return rows


def _visible(cell: Cell) -> Cell:
    if cell.text.isprintable() and cell.short.isprintable():
        return cell
    short = visible(cell.short)
    return Cell(visible(cell.text), cell.left, short, cell.value, cell.drop, cell.wraps)


def _widths(rows: Rows) -> list[int]:
    return [max(len(cell.text) for cell in column) for column in zip(*rows, strict=True)]


def _sum(widths: list[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _wrappable(rows: Rows) -> list[int]:
    """By how much each column becomes narrower if its texts are wrapped."""
    return [max(width - LEAST_WRAPPED, 0) if cell.wraps else 0
            for cell, width in zip(rows[0], _widths(rows), strict=True)]  # fmt: skip


def _wrapped(row: Sequence[Cell], widths: list[int], wraps: Sequence[int]) -> list[Sequence[Cell]]:
    """The row, and more rows below it for texts that are wrapped."""
    from textwrap import wrap

    broken = {n: wrap(row[n].text, widths[n]) for n in wraps if len(row[n].text) > widths[n]}
    if not broken:
        return [row]
    found: list[Sequence[Cell]] = []
    for at in range(max(map(len, broken.values()))):
        texts = [
            (broken[n][at] if at < len(broken[n]) else "") if n in broken
            else "" if at else cell.text
            for n, cell in enumerate(row)
        ]  # fmt: skip
        found.append([Cell(text, cell.left) for text, cell in zip(texts, row, strict=True)])
    return found


def _fitted(widths: list[int], width: int | None, wraps: Sequence[int] = ()) -> list[int]:
    """Column widths that fit; columns whose texts wrap first, then the widest one."""
    widths = list(widths)
    while width is not None and _sum(widths) > width and wraps:
        widest = max(wraps, key=lambda n: widths[n])
        if widths[widest] <= LEAST_WRAPPED:
            break
        widths[widest] -= 1
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
