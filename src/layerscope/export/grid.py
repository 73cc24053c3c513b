"""A small table of texts: laid out within a width, or as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from layerscope.escaping import markdown as escape
from layerscope.escaping import visible
from layerscope.export.text import Style

GAP = "  "
INDENT = " " * 5
LEAST = 4  # signs that a cut column keeps


class Cell(Struct, frozen=True):
    """A text and the side it stands on."""

    text: str
    left: bool = False


def named(text: str) -> Cell:
    """A cell of words, which stand on the left."""
    return Cell(text, True)


Rows = Sequence[Sequence[Cell]]


def lay_out(
    rows: Rows,
    width: int | None,
    style: Style,
    shorter: Rows = (),
    below: Sequence[str] = (),
) -> str:
    """Columns under a head and a rule, texts of `below` under their rows.

    Where the rows are too wide, the shorter ones are taken, and then the widest column is cut.
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
    """Whether the rows need nothing cut."""
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
    """Widths that fit, the widest column losing first."""
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
    """Lines of a text that stands under a row."""
    from textwrap import wrap

    room = max(width or 100, 40) - len(INDENT)
    return [INDENT + line for line in wrap(text, room)]
