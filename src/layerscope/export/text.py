"""A report as a text table: the module tree, fitted to the terminal width, with a total row."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from layerscope.escaping import visible
from layerscope.export.table import ReportTable, TableView, table, usual
from layerscope.report.columns import OF_FIGURES, Column, cell, figures_key, titled
from layerscope.report.numbers import bytes_text, cell_text, exact_text, marked
from layerscope.report.types import Report

# Column sets from the widest to the narrowest; the first that fits is used, with exact numbers if
# those fit too.
LAYOUTS = (
    ("name", "type", "window", "output", "params", "params%", "macs", "macs%", "memory", "field",
     "intensity"),
    ("name", "type", "window", "output", "params", "params%", "macs", "macs%", "memory", "field"),
    ("name", "type", "window", "output", "params", "params%", "macs", "macs%", "memory"),
    ("name", "type", "output", "params", "params%", "macs", "macs%", "memory"),
    ("name", "type", "output", "params", "params%", "macs", "macs%"),
    ("name", "output", "params", "params%", "macs", "macs%"),
    ("name", "output", "params", "macs"),
    ("name", "params", "macs"),
)  # fmt: skip
NARROW = 40  # columns; only narrower terminals lack the column output
ENOUGH = 5  # layouts tried with exact numbers before short numbers are used
LEAST_NAME, LEAST_TEXT = 8, 12  # characters that shortened names and other texts keep
GAP = "  "

Style = Callable[[str, str], str]  # text, role -> text with colour


def plain(text: str, role: str) -> str:
    """No colour."""
    return text


def write(
    report: Report, view: TableView | None = None, *, width: int | None = None, style: Style = plain
) -> str:
    """The table within `width` columns (any if None), without stamp or findings."""
    view = view or TableView()
    layouts = [usual(view, names, report) for names in LAYOUTS]
    if view.columns:
        layouts = [tuple(view.columns)]
    grid = _Printed(table(report, view, layouts[0], tree=True))
    exact: dict[str, list[str]] = {}
    short: dict[str, list[str]] = {}
    if width is None:
        columns = grid.table.columns
        return _lay_out(grid.table, [grid.texts(column, False) for column in columns], style)
    if len(layouts) > 1 and width >= NARROW:
        layouts = layouts[:-1]
    for digits, texts, choices in ((False, exact, layouts[:ENOUGH]), (True, short, layouts)):
        for names in choices:
            columns = titled(names, report)
            for column in columns:
                if column.name not in texts:
                    texts[column.name] = grid.texts(column, digits)
            chosen = [texts[column.name] for column in columns]
            if sum(map(_width, chosen)) + len(GAP) * (len(chosen) - 1) <= width:
                return _lay_out(replace(grid.table, columns=columns), chosen, style)
    columns = titled(layouts[-1], report)
    squeezed = [grid.texts(column, True, indent=" ") for column in columns]
    narrow = _squeezed(columns, squeezed, width)
    return _lay_out(replace(grid.table, columns=columns), narrow, style)


class _Printed:
    """A table, and the texts of its columns; layers with equal figures are printed once."""

    def __init__(self, table: ReportTable) -> None:
        self.table = table
        self.rows = [*table.rows, table.total]
        self.keys = [figures_key(row) for row in self.rows] if table.report.all_exact else []

    def texts(self, column: Column, short: bool, indent: str = "  ") -> list[str]:
        """The cells of one column: title, rows, total."""
        report, kind = self.table.report, column.kind
        texts = [column.title]
        if self.keys and column.name in OF_FIGURES:
            printed: dict[tuple[int, ...], str] = {}
            for row, key in zip(self.rows, self.keys, strict=True):
                text = printed.get(key) if key else None
                if text is None:
                    text = cell_text(cell(column, row, report), kind, short=short)
                    if key:
                        printed[key] = text
                texts.append(text)
            return texts
        for row in self.rows:
            text = cell_text(cell(column, row, report), kind, short=short)
            texts.append(text if text.isprintable() else visible(text))
        if column.name == "name":
            depths = (0, *(row.depth for row in self.rows))
            texts = [indent * depth + text for depth, text in zip(depths, texts, strict=True)]
        return texts


def _width(texts: list[str]) -> int:
    return max(map(len, texts))


def _squeezed(columns: tuple[Column, ...], texts: list[list[str]], width: int) -> list[list[str]]:
    """The narrowest layout with texts shortened to the width that is left, names last."""
    spare = sum(map(_width, texts)) + len(GAP) * (len(texts) - 1) - width
    result = list(texts)
    words = [n for n, column in enumerate(columns) if column.kind == "text"]
    for n in sorted(words, key=lambda n: columns[n].name == "name"):
        if spare <= 0:
            break
        least = LEAST_NAME if columns[n].name == "name" else LEAST_TEXT
        room = max(_width(texts[n]) - spare, least)
        spare -= max(_width(texts[n]) - room, 0)
        result[n] = [text if len(text) <= room else text[: room - 1] + "…" for text in texts[n]]
    return result


def _lay_out(grid: ReportTable, texts: list[list[str]], style: Style) -> str:
    padded = []
    for column, cells in zip(grid.columns, texts, strict=True):
        width = _width(cells)
        pad = str.ljust if column.kind == "text" else str.rjust
        padded.append([pad(text, width) for text in cells])
    head, *body, total = [GAP.join(cells).rstrip() for cells in zip(*padded, strict=True)]
    rule = style("─" * (sum(map(_width, texts)) + len(GAP) * (len(texts) - 1)), "rule")
    lines = [style(head, "head"), rule]
    lines += [style(line, row.kind) for line, row in zip(body, grid.rows, strict=True)]
    lines += [rule, style(total, "total")]
    if grid.note:
        lines.append(style(grid.note, "note"))
    return "\n".join(lines) + "\n"


def total_line(report: Report) -> str:
    """One line: parameters, MACs, FLOPs, peak activation memory (`--total`)."""
    totals = report.totals

    def count(name: str) -> str:
        return marked(exact_text(getattr(totals, name)), report.sign(name))

    parts = [f"{count('params')} params", f"{count('macs')} MACs", f"{count('flops')} FLOPs"]
    counted = report.convention
    if totals.convention_ops is not None and counted.name != "exact":
        parts.append(f"{count('convention_ops')} {counted.figure} ({counted.name})")
    peak = marked(bytes_text(totals.peak_activation_bytes), report.sign("peak_activation_bytes"))
    return f"{visible(report.name)}: {' · '.join(parts)} · peak activations {peak}\n"
