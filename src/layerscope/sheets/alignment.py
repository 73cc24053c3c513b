"""The cells of a row, one for each heading."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from layerscope.documents.figures import read
from layerscope.documents.headings import Heading
from layerscope.documents.types import Cell, Row
from layerscope.sheets.kinds import plain

LABELLED = re.compile(
    r"^(macc?|comp|add|div|exp|activation|param)s?\b\s*(.*)$", re.IGNORECASE | re.DOTALL
)
LABELLED_UNDER = ("ops", "flops", "memory", "activations", "params")


def aligned(
    rows: Sequence[Row], headings: Sequence[Heading | None]
) -> list[tuple[Row, list[Cell]]]:
    """Rows and their cells, without the empty cell of a bar too many."""
    joined = [(row, _rejoined(row, headings)) for row in rows]
    width = len(headings)
    if all(len(cells) != width + 1 for _, cells in joined):
        return joined
    forms = [
        Counter(_form(cells[column]) for _, cells in joined if len(cells) == width)
        for column in range(width)
    ]
    return [
        (row, _without_empty(cells, forms) if len(cells) == width + 1 else cells)
        for row, cells in joined
    ]


def _form(cell: Cell) -> str:
    """A text with one sign for each number: 14x14 is written as 7x7 is."""
    return re.sub(r"\d[\d.,]*", "0", plain(cell.text))


def _without_empty(cells: list[Cell], forms: Sequence[Counter[str]]) -> list[Cell]:
    """The cells without the empty one that moves the others from columns whose form they have."""

    def fitting(given: list[Cell]) -> int:
        return sum(_form(cell) in column for cell, column in zip(given, forms, strict=False))

    shorter = [cells[:n] + cells[n + 1 :] for n, cell in enumerate(cells) if not cell.text.strip()]
    best = max(shorter, key=fitting, default=cells)
    return best if fitting(best) > fitting(cells) else cells


def _rejoined(row: Row, headings: Sequence[Heading | None]) -> list[Cell]:
    """Cells of a row; a label and its figure that a bar separates are one cell."""
    cells: list[Cell] = []
    for cell in row.cells:
        before = cells[-1] if cells else None
        heading = headings[len(cells) - 1] if 0 < len(cells) <= len(headings) else None
        if (
            before is not None
            and (heading is None or heading.meaning in LABELLED_UNDER)
            and LABELLED.match(plain(before.text))
            and _is_bare(before.text)
            and read(cell.text)
        ):
            cells[-1] = Cell(f"{before.text} {cell.text}", before.line, before.column)
        else:
            cells.append(cell)
    return cells


def _is_bare(text: str) -> bool:
    match = LABELLED.match(plain(text))
    return match is not None and not match[2].strip()
