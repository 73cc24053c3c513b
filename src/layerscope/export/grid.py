"""A small table of texts, aligned within a terminal width or as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from layerscope.escaping import markdown as escape
from layerscope.escaping import visible
from layerscope.export.text import Style, plain

GAP = "  "
INDENT = " " * 5
LEAST = 4  # characters that a shortened column keeps


class Cell(Struct, frozen=True):
    """A text and its alignment."""

    text: str
    left: bool = False


def named(text: str) -> Cell:
    """A left-aligned cell."""
    return Cell(text, True)


class TimeView(Struct, frozen=True):
    """How layer times are printed: width to fit, colours, sorted by time, first rows, stamp."""

    width: int | None = None
    style: Style = plain
    sort: bool = False
    top: int | None = None
    stamp: bool = True


Rows = Sequence[Sequence[Cell]]


def lay_out(
    rows: Rows,
    width: int | None,
    style: Style,
    shorter: Rows = (),
    below: Sequence[str] = (),
) -> str:
    """The rows under a header and a rule, with the texts of `below` under their rows.

    If `rows` do not fit into `width`, `shorter` is used, then the widest column is shortened.
    """
    rows, shorter = _escaped(rows), _escaped(shorter)
    chosen = shorter if shorter and not fits(rows, width) else rows
    widths = _fitted(_widths(chosen), width)
    lines = []
    for n, row in enumerate(chosen):
        lines.append(style(_line(row, widths), "layer" if n else "head"))
        if n == 0:
            lines.append(style("─" * _sum(widths), "rule"))
        elif n < len(below) and below[n]:
            lines += [style(line, "note") for line in _broken(visible(below[n]), width)]
    return "\n".join(lines) + "\n"


def _escaped(rows: Rows) -> Rows:
    return [[Cell(visible(cell.text), cell.left) for cell in row] for row in rows]


def fits(rows: Rows, width: int | None) -> bool:
    """Whether the rows fit into the width."""
    return width is None or _sum(_widths(rows)) <= width


def markdown(rows: Rows) -> str:
    """The rows as a Markdown table."""
    lines = []
    for n, row in enumerate(rows):
        lines.append("| " + " | ".join(escape(cell.text) for cell in row) + " |")
        if n == 0:
            lines.append("|" + "|".join(" :--- " if cell.left else " ---: " for cell in row) + "|")
    return "\n".join(lines) + "\n"


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

    room = max(width or 100, 40) - len(INDENT)
    return [INDENT + line for line in wrap(text, room)]
