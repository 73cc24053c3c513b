"""The sheet of a course exercise: patch, stride and output size per axis, exact figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from layerscope.formats.document.names import unescaped
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
from layerscope.sheets.sheet import SheetRow

AXES = (
    ("Height", "Width"),
    ("Length",),
    ("Depth", "Height", "Width"),
    *(tuple(f"Axis {n + 1}" for n in range(rank)) for rank in (0, 4, 5, 6, 7, 8)),
)


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each sheet, of any number of axes."""
    for form in FORMS:
        for network in sheets(lines, form):
            rows = with_batch(unpadded([*map(_with_output, network.rows)]), "Memory")
            yield replace(network, rows=tuple(map(_refined, rows)))


def _refined(row: LayerRow) -> LayerRow:
    """A window as it is printed, and a pool by its type unless its parameters show another."""
    cells = dict(cell.split("\t", 1) for cell in row.cells)
    if not cells or row.output is None:
        return row
    rank = len(row.output) - 2
    row = as_said(row, unescaped(cells["Type"]), cells["Memory"])
    if row.output is None:
        return row
    kernel, stride = (_sizes(cells, what, rank) for what in ("Patch Size", "Stride"))
    row = replace(row, kernel=kernel, stride=stride, inferred=())
    row = with_stage(row, unescaped(cells["Type"]))
    op = pool_op(row.type or row.name) if row.kind in ("pool", "avg_pool", "max_pool") else ""
    return replace(pooled(row, op), numbered=row.traced) if op else row


def _sizes(cells: Mapping[str, str], what: str, rank: int) -> tuple[int, ...] | None:
    texts = [text for title, text in cells.items() if title.startswith(what)]
    if not rank or not all(text.isdecimal() for text in texts):
        return None
    return tuple(map(int, texts))[-rank:]


def _same(row: LayerRow, own: SheetRow) -> LayerRow:
    return row


def _with_output(row: LayerRow) -> LayerRow:
    """The row with its output, the channels last."""
    sizes = [cell.partition("\t")[2] for cell in row.cells if cell.startswith("Output Size")]
    if not row.cells or not all(size.isdecimal() for size in sizes):
        return replace(row, output=None) if row.cells else row
    *space, channels = map(int, sizes)
    return replace(row, output=(1, channels, *space))


def _titles(axes: Sequence[str]) -> tuple[str, ...]:
    windows = [f"{what} ({axis})" for what in ("Patch Size", "Stride") for axis in axes]
    sizes = [f"Output Size ({axis})" for axis in (*axes, "Channel")]
    return ("Layer ID", "Type", *windows, *sizes, "Memory", "Params", "Ratio")


FORMS = tuple(
    SheetForm(
        "layersheet",
        _titles(axes),
        {"Layer ID": r"\d{1,6}|Total", "Type": r"[^|]{0,200}"},
        ("Type",),
        ("Ratio",),
        _same,
    )
    for axes in AXES
)
