"""The Markdown sheet of backbone notes: window, channels and size of each layer, figures cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from layerscope.formats.document.rows import LayerRow, PrintedNetwork
from layerscope.formats.document.sheet import SheetForm, pool_op, sheets
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
            rows.append(replace(row, output=(1, channels or 0, *sizes) if whole else None))
        yield replace(network, rows=tuple(rows))


def _refine(row: LayerRow, own: SheetRow) -> LayerRow:
    """A pool by its name, and its padding, which is blank where there is none."""
    op = pool_op(row.name)
    if not op:
        return row
    rank = len(row.kernel or ())
    pads = row.pads if row.pads is not None else ((0, 0),) * rank if rank else None
    return replace(row, op=op, pads=pads)


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
    _refine,
)
