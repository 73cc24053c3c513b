"""Tables as MatConvNet writes them: blocks of columns as text, csv or LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from layerscope.errors import UsageError
from layerscope.escaping import csv_cell, latex, visible
from layerscope.report.quantities import count_of

MOST_COLUMNS = 18  # in a block, MatConvNet's maxNumColumns
RULE = "-"
SEPARATORS = ',;"'  # a csv cell with one of these must begin with its quote

TextTable = list[list[str]]
Style = Callable[[TextTable], str]


def in_blocks(
    head: Sequence[str], columns: Sequence[Sequence[str]], most: int = MOST_COLUMNS
) -> list[TextTable]:
    """Tables of at most `most` columns, each after a column of row names."""
    width = count_of(most, "--max-columns")
    if width < 1:
        raise UsageError(f"--max-columns {width}, expected at least 1")
    parts = [columns[n : n + width] for n in range(0, len(columns), width)]
    return [list(map(list, zip(head, *part, strict=True))) for part in parts]


def text_table(table: TextTable) -> str:
    """Rows of right-aligned cells, each followed by a bar."""
    text = ""
    for row in _aligned([[visible(cell) for cell in row] for row in table]):
        text += "".join(f"{cell}|" for cell in row) + "\n"
    return text


def csv_table(table: TextTable) -> str:
    """Rows of quoted cells, each followed by a comma."""
    return "".join("".join(f"{cell}," for cell in row) + "\n" for row in _quoted(table))


def aligned_csv_table(table: TextTable) -> str:
    """Rows of quoted cells, right-aligned with spaces before the quote, as a DagNN prints them.

    A cell with a separator or a quote in it is not aligned: readers would take the quote after a
    space for a part of the text, and split the cell.
    """
    rows = list(_quoted(table))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = ""
    for row in rows:
        for cell, width in zip(row, widths, strict=True):
            plain = not any(sign in cell[1:-1] for sign in SEPARATORS)
            text += (cell.rjust(width) if plain else cell) + ","
        text += "\n"
    return text


def latex_table(table: TextTable) -> str:
    """A tabular, with a line where the text has a row of dashes."""
    text = rf"\begin{{tabular}}{{{'c' * len(table[0])}}}" + "\n"
    for row in _aligned(table, lambda cell: latex(cell).replace(r"\_", r"\char`_")):
        text += "\\hline\n" if row[0].startswith(RULE) else "&".join(row) + "\\\\\n"
    return text + "\\end{tabular}\n"


def _quoted(table: TextTable) -> Iterator[list[str]]:
    """Cells in quotes, without the rows of dashes."""
    for row in table:
        if row[0] != RULE:
            yield ['"' + str(csv_cell(cell)).replace('"', '""') + '"' for cell in row]


def _aligned(table: TextTable, escape: Callable[[str], str] = str) -> Iterator[list[str]]:
    """Cells padded to the width of their column, which is measured before escaping."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        fill = RULE if row[0] == RULE else " "
        yield [escape(cell).rjust(width, fill) for cell, width in zip(row, widths, strict=True)]
