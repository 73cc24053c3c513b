"""Shared by the readers of backbone, cs231n and layersheet: a recognised sheet, and its own cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from layerscope.documents.reader import read as read_tables
from layerscope.formats.document.rows import LayerRow, PrintedNetwork
from layerscope.formats.document.tables import network_of_sheet
from layerscope.sheets.kinds import is_total
from layerscope.sheets.sheet import Sheet, SheetRow, sheet_of

FIGURE = r"[~≥≤?+.,\d ]{0,40}[KMGTPB%]{0,2}(?: \+ \?)?"
PRODUCT = rf"[\d*()+\\ ]{{0,200}}(?: ?= ?)?{FIGURE}"
POOLS: Mapping[str, str] = {
    "maxpool": "max_pool", "avgpool": "avg_pool", "lppool": "lp_pool", "pool": "max_pool",
}  # fmt: skip


class SheetForm(Struct, frozen=True):
    """A notation of sheets: its headings, what its cells may be, and what its rows say."""

    stem: str
    titles: tuple[str, ...]
    grammar: Mapping[str, str]  # patterns of cells by title; others are figures
    traced: tuple[str, ...]  # titles of cells that depend on all rows before
    summed: tuple[str, ...]  # titles of cells that depend on all rows
    refine: Callable[[LayerRow, SheetRow], LayerRow]


def sheets(lines: Sequence[str], form: SheetForm) -> Iterator[PrintedNetwork]:
    """A network for each table with the headings of the notation."""
    if not any(form.titles[-1] in line for line in lines):
        return
    for table in read_tables("\n".join(lines)):
        if tuple(cell.text for cell in table.heading.cells) != form.titles:
            continue
        sheet = sheet_of(table)
        network = None if sheet is None else network_of_sheet(sheet)
        if sheet is not None and network is not None:
            yield with_cells(network, sheet, form)


def with_cells(network: PrintedNetwork, sheet: Sheet, form: SheetForm) -> PrintedNetwork:
    """The network with the cells of its rows, and of the total."""
    by_line = {row.line: row for row in sheet.rows}
    rows = []
    for row in network.rows:
        own = by_line[row.line]
        cells = claimed(form, [cell.text for cell in own.cells])
        traced = tuple(cell for cell in cells if cell.partition("\t")[0] in form.traced)
        summed = tuple(cell for cell in cells if cell.partition("\t")[0] in form.summed)
        rows.append(form.refine(replace(row, cells=cells, traced=traced, summed=summed), own))
    total = next((row for row in reversed(sheet.rows) if is_total(row.label)), None)
    totals = () if total is None else claimed(form, [cell.text for cell in total.cells])
    return replace(network, rows=tuple(rows), notation=form.stem, totals=totals, branched=True)


def claimed(form: SheetForm, texts: Sequence[str]) -> tuple[str, ...]:
    """Titles and cells; () if one is not as the notation writes it."""
    if len(texts) != len(form.titles):
        return ()
    for title, text in zip(form.titles, texts, strict=True):
        if not re.fullmatch(form.grammar.get(title, FIGURE), text) or not text.isprintable():
            return ()
    return tuple(f"{title}\t{text}" for title, text in zip(form.titles, texts, strict=True))


def pool_op(words: str) -> str:
    """The op of a pool by its name without numbers; "" for another layer."""
    return POOLS.get(re.sub(r"[^a-z]", "", words.lower()), "")
