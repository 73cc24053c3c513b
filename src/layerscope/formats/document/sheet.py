"""Shared by the readers of backbone, cs231n and layersheet: sheets with the cells of their rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from layerscope.documents.figures import RULES
from layerscope.documents.figures import read as read_figure
from layerscope.documents.headings import Meaning
from layerscope.formats.document.choices import JOINED
from layerscope.formats.document.rows import Amount, LayerRow, PrintedNetwork
from layerscope.formats.document.tables import network_of_sheet, tables_in
from layerscope.graph.attributes import AdaptivePool
from layerscope.graph.types import elements
from layerscope.ops import SPECS
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
    for table in tables_in(lines, form.titles):
        sheet = sheet_of(table)
        network = None if sheet is None else network_of_sheet(sheet, notation=True)
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
    return replace(
        network, rows=tuple(rows), notation=form.stem, totals=totals, branched=None, biased=False
    )


STAGED = re.compile(
    r"(?:(?:de)?conv(?=\d+_)|(?:avg|lp)?pool)(?P<stage>\d{1,6})(?:_\d{1,6})?$", re.I
)
ELEMENTS: Meaning = "activations"
WINDOWED = ("convolution", "pooling", "linear")  # families that sheets have names of their own for
SAID = ("input", "conv", "depthwise", "deconv", "fc", "pool", "max_pool", "avg_pool", "unknown")


def as_said(row: LayerRow, label: str, memory: str) -> LayerRow:
    """The row with the op that its label names, where it is no convolution, pool or product.

    Its memory, which counts the elements of all images, tells whether it has other images than the
    input: then its output is open.
    """
    named = label in SPECS and SPECS[label].family not in WINDOWED
    if row.kind in SAID and row.kind != "unknown" and not named:
        return row
    op = label if label in JOINED else ""
    figure = read_figure(memory)
    counted = None if figure is None else Amount(figure, rules=RULES)
    output = row.output
    if counted is not None and output is not None and not counted.stands_for(elements(output)):
        output = None
    amounts = {**row.amounts} if counted is None else {**row.amounts, ELEMENTS: counted}
    return replace(row, kind="unknown", op=op, type=label, output=output, amounts=amounts)


def unpadded(rows: Sequence[LayerRow]) -> list[LayerRow]:
    """The rows without ones before their sizes, which fill up to the axes of the longest row."""
    first = rows[0].output if rows else None
    ones = 0
    while first is not None and len(first) - ones > 4 and first[2 + ones] == 1:
        ones += 1
    found = []
    for row in rows:
        output = row.output
        if output is not None and ones and all(size == 1 for size in output[2 : 2 + ones]):
            row = replace(row, output=(*output[:2], *output[2 + ones :]))
        found.append(row)
    return found


def with_batch(rows: Sequence[LayerRow], memory: str) -> list[LayerRow]:
    """The rows with the images that the memory of the first one counts; `memory` is its title."""
    first = rows[0] if rows else None
    cells = dict(cell.split("\t", 1) for cell in first.cells) if first else {}
    counted = read_figure(cells.get(memory, ""))
    if first is None or first.output is None or counted is None or not elements(first.output):
        return list(rows)
    batch = round(counted.value() / elements(first.output))
    if batch <= 1:
        return list(rows)
    return [
        replace(row, output=(batch, *row.output[1:])) if row.output is not None else row
        for row in rows
    ]


def with_stage(row: LayerRow, name: str) -> LayerRow:
    """The row with the stage in its name: 2 of conv2_1, and of Pool2."""
    match = STAGED.match(name)
    return row if match is None else replace(row, stage=int(match["stage"]))


def claimed(form: SheetForm, texts: Sequence[str]) -> tuple[str, ...]:
    """Titles and cells; () if one is not as the notation writes it."""
    if len(texts) != len(form.titles):
        return ()
    for title, text in zip(form.titles, texts, strict=True):
        if not re.fullmatch(form.grammar.get(title, FIGURE), text) or not text.isprintable():
            return ()
    return tuple(f"{title}\t{text}" for title, text in zip(form.titles, texts, strict=True))


def pooled(row: LayerRow, op: str) -> LayerRow:
    """The row of a pool; one without a window has bins that are not even."""
    row = replace(row, changes=True)  # a sheet has no row for another
    if row.kernel is not None or row.output is None or len(row.output) < 3 or op == "lp_pool":
        return replace(row, op=op)
    bins = AdaptivePool(row.output[2:])
    return replace(
        row, op=f"adaptive_{op}", attributes=bins, kernel=None, stride=None, uneven_bins=True
    )


def pool_op(words: str) -> str:
    """The op of a pool by its name without numbers; "" for another layer."""
    return POOLS.get(re.sub(r"[^a-z]", "", words.lower()), "")
