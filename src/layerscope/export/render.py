"""Blocks of a result in every form: text, Markdown, csv, LaTeX, HTML, and a data frame.

To add a form: a function of the blocks here, and a line in FORMS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from layerscope.errors import MissingExtra, UnknownName
from layerscope.escaping import csv_cell, csv_comment, latex, markdown, one_line, visible
from layerscope.escaping import html as escape_html
from layerscope.export.grid import Blocks, Cell, Grid, Lines, lay_out
from layerscope.export.text import Style, plain

if TYPE_CHECKING:
    from pandas import DataFrame

CELL = "padding:.1em .6em"


def text(blocks: Blocks, *, width: int | None = None, style: Style = plain) -> str:
    """Tables fitted to `width`, with an empty line between blocks."""
    parts = []
    for block in blocks:
        if isinstance(block, Grid):
            heads = _wrapped([block.title], width) if block.title else []
            table = lay_out(block.rows, width, style, block.below)
            parts.append("".join(f"{style(line, 'head')}\n" for line in heads) + table)
        elif block.lines:
            role = "head" if block.role == "head" else "layer"
            lines = [style(line, role) for line in _wrapped(block.lines, width)]
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _wrapped(lines: Sequence[str], width: int | None) -> list[str]:
    """Lines broken between words, so that none is longer than `width`."""
    from textwrap import wrap

    found = []
    for line in map(visible, lines):
        indent = " " * (len(line) - len(line.lstrip()))
        room = max(width, 20) if width else len(line)
        short = len(line) <= room
        found += [line] if short else wrap(line, room, subsequent_indent=indent)
    return found


def to_markdown(blocks: Blocks) -> str:
    """Markdown tables; a text under a row is its last cell, lists and stamps are lines."""
    parts = []
    for block in blocks:
        if isinstance(block, Grid):
            title = f"{markdown(block.title)}\n\n" if block.title else ""
            parts.append(title + _markdown_table(_with_notes(block)))
        elif block.lines:
            start, end = {"list": ("- ", ""), "head": ("", ""), "stamp": ("", "  ")}[block.role]
            lines = [f"{start}{markdown(line, keep='_')}{end}\n" for line in block.lines]
            parts.append("".join(lines))
    return "\n".join(parts)


def _markdown_table(rows: Sequence[Sequence[Cell]]) -> str:
    lines = []
    for n, row in enumerate(rows):
        lines.append("| " + " | ".join(markdown(cell.text) for cell in row) + " |")
        if n == 0:
            lines.append("|" + "|".join(" :--- " if cell.left else " ---: " for cell in row) + "|")
    return "\n".join(lines) + "\n"


def _with_notes(grid: Grid) -> Sequence[Sequence[Cell]]:
    """The rows with one more column for the texts under them, if there are any."""
    if not any(grid.below):
        return grid.rows
    notes = [*grid.below, *[""] * (len(grid.rows) - len(grid.below))]
    notes[0] = "note"
    return [[*row, Cell(note, True)] for row, note in zip(grid.rows, notes, strict=True)]


def main_table(blocks: Blocks) -> Grid:
    """The table that is the csv and the data frame."""
    return next(each for each in blocks if isinstance(each, Grid) and each.in_csv)


def _names(grid: Grid) -> list[str]:
    titles = [cell.text for cell in grid.rows[0]]
    return [name or title for name, title in zip(grid.names or titles, titles, strict=True)]


def to_csv(blocks: Blocks) -> str:
    """The main table with exact values, then stamps and notes as comments."""
    import csv

    grid = main_table(blocks)
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_names(grid))
    for row in grid.rows[1:]:
        writer.writerow([csv_cell(cell.text if cell.value is None else cell.value) for cell in row])
    for line in _stamps(blocks):
        out.write(f"# {csv_comment(line)}\n")
    return out.getvalue()


def records(blocks: Blocks) -> list[dict[str, object]]:
    """The main table as one object per row, for JSON."""
    grid = main_table(blocks)
    return [
        {name: cell.text if cell.value is None else cell.value
         for name, cell in zip(_names(grid), row, strict=True)}
        for row in grid.rows[1:]
    ]  # fmt: skip


def _stamps(blocks: Blocks) -> list[str]:
    return [line for each in blocks if isinstance(each, Lines) and each.role == "stamp"
            for line in each.lines]  # fmt: skip


def to_frame(blocks: Blocks) -> DataFrame:
    """The main table as a pandas DataFrame; stamps and notes are in `attrs`.

    A cell without a number is NaN in a column of numbers.
    """
    try:
        import pandas
    except ImportError:
        raise MissingExtra("a DataFrame", "frame") from None
    grid = main_table(blocks)
    rows = grid.rows[1 : len(grid.rows) - grid.totals]
    values = [[cell.text if cell.value is None else cell.value for cell in row] for row in rows]
    frame = pandas.DataFrame(values, columns=_names(grid))
    for n, column in enumerate(zip(*values, strict=True)):
        filled = [value for value in column if value != ""]
        if 0 < len(filled) < len(column) and not any(isinstance(value, str) for value in filled):
            numbers = [None if value == "" else value for value in column]
            frame.isetitem(n, pandas.Series(numbers, dtype="float64"))
    frame.attrs["notes"] = _stamps(blocks)
    return frame


def to_latex(blocks: Blocks) -> str:
    """Tables in the booktabs style; texts under rows and all other lines are comments."""
    parts = []
    for block in blocks:
        if isinstance(block, Lines):
            parts.append("".join(f"% {one_line(line)}\n" for line in block.lines))
            continue
        align = "".join("l" if cell.left else "r" for cell in block.rows[0])
        lines = [f"% {one_line(block.title)}"] if block.title else []
        lines += [rf"\begin{{tabular}}{{{align}}}", r"\toprule"]
        for n, row in enumerate(block.rows):
            if n == 1 or (block.totals and n == len(block.rows) - block.totals):
                lines.append(r"\midrule")
            lines.append(" & ".join(latex(cell.text) for cell in row) + r" \\")
            if n < len(block.below) and block.below[n]:
                lines.append(f"% {one_line(block.below[n])}")
        lines += [r"\bottomrule", r"\end{tabular}"]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(part for part in parts if part)


def to_html(blocks: Blocks) -> str:
    """Tables and lines without a script; long tables are folded."""
    parts = []
    for block in blocks:
        if isinstance(block, Grid):
            parts.append(_html_table(block))
        elif block.role == "list" and block.lines:
            items = "".join(f"<li>{escape_html(line)}</li>" for line in block.lines)
            parts.append(f"<ul>{items}</ul>\n")
        elif block.lines:
            lines = "<br>".join(map(escape_html, block.lines))
            small = ' style="font-size:smaller"' if block.role == "stamp" else ""
            parts.append(f"<p{small}>{lines}</p>\n")
    return "".join(parts)


def _html_table(grid: Grid) -> str:
    head, *rows = grid.rows
    below = [*grid.below[1:], *[""] * (len(rows) - max(len(grid.below) - 1, 0))]
    titles = "".join(f'<th style="{_side(cell)}">{escape_html(cell.text)}</th>' for cell in head)
    lines = [
        '<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">',
        f"<thead><tr>{titles}</tr></thead><tbody>",
    ]
    for n, (row, note) in enumerate(zip(rows, below, strict=True)):
        if grid.totals and n == len(rows) - grid.totals:
            lines.append('</tbody><tfoot style="border-top:1px solid">')
        cells = "".join(f'<td style="{_side(cell)}">{escape_html(cell.text)}</td>' for cell in row)
        lines.append(f"<tr>{cells}</tr>")
        if note:
            lines.append(
                f'<tr><td colspan="{len(row)}" style="text-align:left;padding:.1em 2em;'
                f'font-size:smaller">{escape_html(note)}</td></tr>'
            )
    table = "\n".join([*lines, "</tfoot></table>" if grid.totals else "</tbody></table>"]) + "\n"
    title = escape_html(grid.title)
    if grid.folds:
        return f"<details><summary>{title or f'{len(rows):,} rows'}</summary>\n{table}</details>\n"
    return (f"<p><b>{title}</b></p>\n" if title else "") + table


def _side(cell: Cell) -> str:
    return f"text-align:{'left' if cell.left else 'right'};{CELL}"


FORMS: dict[str, Callable[..., str]] = {
    "text": text,
    "markdown": to_markdown,
    "csv": to_csv,
    "latex": to_latex,
    "html": to_html,
}


def render(blocks: Blocks, form: str, **options: object) -> str:
    """The blocks in a form; `width` and `style` apply to text."""
    if form not in FORMS:
        raise UnknownName("form", form, FORMS, f"; choose from {', '.join(FORMS)}")
    return FORMS[form](blocks, **(options if form == "text" else {}))
