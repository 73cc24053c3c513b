"""The sheet of a course exercise: patch, stride and output size per axis, exact figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from layerscope.formats.document.rows import LayerRow, PrintedNetwork
from layerscope.formats.document.sheet import SheetForm, pool_op, sheets
from layerscope.sheets.sheet import SheetRow

AXES = (("Height", "Width"), ("Length",), ("Depth", "Height", "Width"))


def read(lines: Sequence[str]) -> Iterator[PrintedNetwork]:
    """A network for each sheet, of any number of axes."""
    for form in FORMS:
        yield from sheets(lines, form)


def _refine(row: LayerRow, own: SheetRow) -> LayerRow:
    """A pool by its type, unless its parameters have shown that it is none."""
    op = pool_op(row.type or row.name) if row.kind in ("pool", "avg_pool", "max_pool") else ""
    return replace(row, op=op) if op else row


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
        _refine,
    )
    for axes in AXES
)
