"""A report as a table for people: a tree that fits the terminal, totals last, findings under it."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.export.table import Table, View, table
from layerscope.report.columns import Column
from layerscope.report.numbers import cell_text
from layerscope.report.tree import Row
from layerscope.report.types import Report

# From the widest to the narrowest; the first that fits is taken, with all digits if they fit too.
LAYOUTS = (
    ("name", "type", "window", "output", "params", "params%", "macs", "macs%", "memory", "field",
     "intensity"),
    ("name", "type", "window", "output", "params", "params%", "macs", "macs%", "memory", "field"),
    ("name", "type", "window", "output", "params", "params%", "macs", "macs%", "memory"),
    ("name", "type", "output", "params", "params%", "macs", "macs%", "memory"),
    ("name", "type", "output", "params", "params%", "macs", "macs%"),
    ("name", "output", "params", "params%", "macs", "macs%"),
    ("name", "params", "params%", "macs", "macs%"),
    ("name", "params", "macs"),
)  # fmt: skip
ENOUGH = 5  # layouts worth losing digits for: below this many columns short numbers come first
LEAST_NAME = 10
GAP = "  "

Style = Callable[[str, str], str]  # text, role -> text with colour


def plain(text: str, role: str) -> str:
    """No colour."""
    return text


def write(
    report: Report, view: View | None = None, *, width: int | None = None, style: Style = plain
) -> str:
    """The table within `width` columns (any if None), without stamp or findings."""
    view = view or View()
    layouts = (view.columns,) if view.columns else LAYOUTS
    if width is None:
        return _lay_out(table(report, view, layouts[0], tree=True), False, None, style)
    for short, choices in ((False, layouts[:ENOUGH]), (True, layouts)):
        for names in choices:
            grid = table(report, view, names, tree=True)
            if sum(_widths(grid, short)) + len(GAP) * (len(names) - 1) <= width:
                return _lay_out(grid, short, None, style)
    grid = table(report, view, layouts[-1], tree=True)
    return _lay_out(grid, True, width, style)


def _label(row: Row, text: str) -> str:
    return "  " * row.depth + text


def _texts(grid: Table, row: Row, short: bool) -> list[str]:
    texts = []
    for column, value in zip(grid.columns, grid.cells(row), strict=True):
        text = safe(cell_text(value, column.kind, short=short))
        if row.unknown and row.kind != "layer" and text and column.kind in ("count", "bytes"):
            text = "≥" + text
        texts.append(_label(row, text) if column.name == "name" else text)
    return texts


def _widths(grid: Table, short: bool) -> list[int]:
    rows = [[column.title for column in grid.columns]]
    rows += [_texts(grid, row, short) for row in [*grid.rows, grid.total]]
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _lay_out(grid: Table, short: bool, width: int | None, style: Style) -> str:
    widths = _widths(grid, short)
    if width is not None:  # nothing narrower is left: names give way
        spare = sum(widths) + len(GAP) * (len(widths) - 1) - width
        place = next((n for n, c in enumerate(grid.columns) if c.name == "name"), None)
        if place is not None and spare > 0:
            widths[place] = max(widths[place] - spare, LEAST_NAME)
    rule = style("─" * (sum(widths) + len(GAP) * (len(widths) - 1)), "rule")
    head = [column.title for column in grid.columns]
    lines = [style(_line(grid.columns, head, widths), "head"), rule]
    for row in grid.rows:
        line = _line(grid.columns, _texts(grid, row, short), widths)
        lines.append(style(line, row.kind))
    lines += [rule, style(_line(grid.columns, _texts(grid, grid.total, short), widths), "total")]
    if grid.note:
        lines.append(style(grid.note, "note"))
    return "\n".join(lines) + "\n"


def _line(columns: tuple[Column, ...], texts: list[str], widths: list[int]) -> str:
    cells = []
    for column, text, width in zip(columns, texts, widths, strict=True):
        if len(text) > width:
            text = text[: width - 1] + "…"
        cells.append(text.ljust(width) if column.kind == "text" else text.rjust(width))
    return GAP.join(cells).rstrip()


def safe(text: str) -> str:
    """Text without control characters, which a terminal would obey."""
    return (
        text
        if text.isprintable()
        else "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)
    )


def total_line(report: Report) -> str:
    """The one line people ask for: parameters, MACs, FLOPs, peak memory."""
    from layerscope.report.numbers import bytes_text, exact_text

    totals = report.totals
    least = "≥" if report.coverage.unknown else ""
    parts = [
        f"{least}{exact_text(totals.params)} params",
        f"{least}{exact_text(totals.macs)} MACs",
        f"{least}{exact_text(totals.flops)} FLOPs",
    ]
    figure = report.convention.figure
    if totals.convention_ops is not None and report.convention.name != "exact":
        parts.append(f"{exact_text(totals.convention_ops)} {figure} ({report.convention.name})")
    peak = f"peak activations {least}{bytes_text(totals.peak_activation_bytes)}"
    return f"{safe(report.name)}: {' · '.join(parts)} · {peak}\n"
