"""A small table of texts: laid out within a width, or as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from layerscope.export.markdown import escape
from layerscope.export.text import Style

GAP = "  "
LEAST = 16  # columns that a broken last one keeps, and names that are cut


class Cell(Struct, frozen=True):
    """A text and the side it stands on."""

    text: str
    left: bool = False


def named(text: str) -> Cell:
    """A cell of words, which stand on the left."""
    return Cell(text, True)


Rows = Sequence[Sequence[Cell]]


def lay_out(
    rows: Rows, width: int | None, style: Style, shorter: Rows = (), *, wrap: bool = False
) -> str:
    """Columns under a head and a rule; the shorter rows, broken or cut, if those do not fit."""
    chosen = rows
    if width is not None and _total(rows, wrap) > width and shorter:
        chosen = shorter
    widths = _widths(chosen)
    if width is not None:
        widths = _fitted(widths, width, wrap)
    lines = []
    for n, row in enumerate(chosen):
        for line in _broken(row, widths, wrap):
            lines.append(style(line, "head" if n == 0 else "layer"))
        if n == 0:
            lines.append(style("─" * (sum(widths) + len(GAP) * (len(widths) - 1)), "rule"))
    return "\n".join(lines) + "\n"


def fits(rows: Rows, width: int | None) -> bool:
    """Whether the rows need nothing cut."""
    return width is None or _total(rows, False) <= width


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


def _total(rows: Rows, wrap: bool) -> int:
    widths = _widths(rows)
    if wrap:
        widths[-1] = min(widths[-1], LEAST)
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _fitted(widths: list[int], width: int, wrap: bool) -> list[int]:
    """Widths that fit: the last column is broken, then the widest one is cut."""
    widths = list(widths)
    room = width - len(GAP) * (len(widths) - 1)
    if wrap:
        widths[-1] = min(widths[-1], max(room - sum(widths[:-1]), LEAST))
    while sum(widths) > room and max(widths) > 4:
        at = widths.index(max(widths))
        widths[at] = max(widths[at] - (sum(widths) - room), 4, sorted(widths)[-2] - 1)
    return widths


def _broken(row: Sequence[Cell], widths: list[int], wrap: bool) -> list[str]:
    """The lines of a row: more than one where the last cell is broken between words."""
    from textwrap import wrap as broken

    texts = [cell.text for cell in row]
    more: list[str] = []
    if wrap and len(texts[-1]) > widths[-1]:
        texts[-1], *more = broken(texts[-1], widths[-1])
    line = []
    for cell, text, width in zip(row, texts, widths, strict=True):
        cut = text if len(text) <= width else text[: width - 1] + "…"
        line.append(cut.ljust(width) if cell.left else cut.rjust(width))
    indent = " " * (sum(widths[:-1]) + len(GAP) * (len(widths) - 1))
    return [GAP.join(line).rstrip(), *(indent + rest for rest in more)]
