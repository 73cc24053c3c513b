"""The Markdown sheet of backbone notes: window, channels and size of each layer, figures cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from layerscope.formats.document.rows import LayerRow, PrintedNetwork
from layerscope.formats.document.sheet import (
    SheetForm,
    as_said,
    pool_op,
    pooled,
    sheets,
    unpadded,
    with_batch,
    with_stage,
)
from layerscope.graph.attributes.window import Pads, Same
from layerscope.sheets.sheet import SheetRow

NUMBERS = re.compile(r"\d{1,19}")
SIZES = r"(?:\d+(?:x\d+)*|\?)?"


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each sheet; a blank channel or size is that of the row above."""
    for network in sheets(lines, FORM):
        channels: int | None = None
        sizes: tuple[int, ...] = ()
        rows = []
        for row in network.rows:
            cells = dict(cell.split("\t", 1) for cell in row.cells)
            if not cells:
                rows.append(row)
                continue
            printed, size = cells["**channel**"], cells["size"]
            channels = int(printed) if printed.isdecimal() else None if printed else channels
            sizes = tuple(map(int, NUMBERS.findall(size))) if size else sizes
            whole = channels is not None and "?" not in size
            found = replace(row, output=(1, channels or 0, *sizes) if whole else None)
            rows.append(found)
        rows = [*map(_refined, with_batch(unpadded(rows), "memory(B)"))]
        yield replace(network, rows=tuple(_with_blanks(rows)))


def _with_blanks(rows: Sequence[LayerRow]) -> Iterator[LayerRow]:
    """The rows; blank channels and sizes that repeat those of an open row above are traced."""
    for n, row in enumerate(rows):
        before = rows[n - 1] if n else row
        blank = [cell for cell in row.cells if cell in ("**channel**\t", "size\t")]
        yield replace(row, traced=(*row.traced, *blank)) if before.output is None else row


def _refined(row: LayerRow) -> LayerRow:
    """The row with its window; a pool by its name, without padding where that is blank."""
    cells = dict(cell.split("\t", 1) for cell in row.cells)
    if not cells or row.output is None:
        return row
    rank = len(row.output) - 2
    row = as_said(row, row.name, cells["memory(B)"])
    if row.output is None:
        return row
    kernel, stride = (_sizes(cells[title], rank) for title in ("ksize", "stride"))
    op = pool_op(row.name)
    pads = _pads(cells["padding"], rank) if kernel is not None else None
    if pads is None and op and kernel is not None:
        pads = ((0, 0),) * rank
    same: Same | None = "same_upper" if cells["padding"] == "same" else None
    row = replace(row, kernel=kernel, stride=stride, pads=pads, same=same, inferred=())
    return pooled(row, op) if op else with_stage(row, row.name)


def _sizes(text: str, rank: int) -> tuple[int, ...] | None:
    sizes = tuple(map(int, NUMBERS.findall(text)))
    return sizes * rank if len(sizes) == 1 else sizes if len(sizes) == rank else None


def _pads(text: str, rank: int) -> Pads | None:
    """Padding per axis: 1, 1x2, 2:3x1."""
    found = [tuple(map(int, NUMBERS.findall(part))) for part in text.split("x")]
    pairs = [(part[0], part[-1]) for part in found if part]
    pairs = pairs * rank if len(pairs) == 1 else pairs
    return tuple(pairs) if len(pairs) == rank else None


def _same(row: LayerRow, own: SheetRow) -> LayerRow:
    return row


FORM = SheetForm(
    "backbone",
    ("name", "ksize", "stride", "padding", "**channel**", "size", "params", "memory(B)"),
    {
        "name": r"(?:`[^`|]{1,200}`)?",
        "ksize": SIZES,
        "stride": SIZES,
        "padding": r"(?:[\dx:]+|same|\?)?",
        "size": r"(?:\$\d+(?: \\times \d+)*\$|\?)?",
    },
    ("name",),
    (),
    _same,
)
