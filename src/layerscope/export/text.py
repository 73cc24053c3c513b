"""A report as a text table: the module tree, fitted to the terminal width, with a total row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from layerscope.escaping import visible
from layerscope.export.table import ReportTable, TableView, table, usual
from layerscope.report.columns import Column, cell, titled
from layerscope.report.numbers import bytes_text, cell_text, exact_text, marked
from layerscope.report.tree import TableRow
from layerscope.report.types import Layer, Report

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
NONE = ()  # the key of rows whose cells are not shared

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
    if width is None:
        columns = grid.table.columns
        return _lay_out(grid.table, [grid.cells(column, False) for column in columns], style)
    if len(layouts) > 1 and width >= NARROW:
        layouts = layouts[:-1]
    for short, choices in ((False, layouts[:ENOUGH]), (True, layouts)):
        for names in choices:
            columns = titled(names, report)
            if (chosen := grid.within(columns, short, width)) is not None:
                return _lay_out(replace(grid.table, columns=columns), chosen, style)
    columns = titled(layouts[-1], report)
    squeezed = [grid.cells(column, True, indent=" ") for column in columns]
    narrow = _squeezed(columns, squeezed, width)
    return _lay_out(replace(grid.table, columns=columns), narrow, style)


class _Cells(Struct, frozen=True):
    """The cells of a column: different texts, and which of them each line has."""

    texts: list[str]
    at: Sequence[int]  # by line: title, rows, total

    @property
    def width(self) -> int:
        return max(map(len, self.texts))


class _Printed:
    """A table, and the texts of its columns; cells that must be equal are printed once."""

    def __init__(self, table: ReportTable) -> None:
        self.table = table
        self.rows = [*table.rows, table.total]
        self._cells: dict[tuple[str, bool, str], _Cells] = {}
        self._numbers: dict[object, tuple[list[TableRow], list[int]]] = {}  # by the key function

    def within(self, columns: tuple[Column, ...], short: bool, width: int) -> list[_Cells] | None:
        """The cells of columns that fit together; None if they do not."""
        found = []
        left = width + len(GAP)
        for column in columns:
            found.append(self.cells(column, short))
            left -= found[-1].width + len(GAP)
            if left < 0:
                return None
        return found

    def cells(self, column: Column, short: bool, indent: str = "  ") -> _Cells:
        """The cells of one column."""
        key = (column.name, short, indent)
        if key not in self._cells:
            self._cells[key] = self._printed(column, short, indent)
        return self._cells[key]

    def _printed(self, column: Column, short: bool, indent: str) -> _Cells:
        report = self.table.report
        if column.name == "name":
            texts = _visible([column.title, *[row.label for row in self.rows]])
            depths = [0, *[row.depth for row in self.rows]]
            if any(depths):
                texts = [indent * depth + text for depth, text in zip(depths, texts, strict=True)]
            return _Cells(texts, range(len(texts)))
        rows, at = self._distinct(column)
        texts = [cell_text(cell(column, row, report), column.kind, short=short) for row in rows]
        return _Cells([column.title, *_visible(texts)], at)

    def _distinct(self, column: Column) -> tuple[list[TableRow], Sequence[int]]:
        """Rows whose cells may differ, and the number of the text of each line."""
        if column.name in OF_FIGURES and self.table.report.all_exact:
            if _figures_key not in self._numbers:
                keys: list[Hashable] = [_figures_key(row) for row in self.rows]
                self._numbers[_figures_key] = _numbered(self.rows, keys)
            return self._numbers[_figures_key]
        key = TEXT_KEYS.get(column.name)
        if key is None:
            return self.rows, range(len(self.rows) + 1)
        if key not in self._numbers:
            keys = [key(row.members[0]) if row.kind == "layer" else NONE for row in self.rows]
            self._numbers[key] = _numbered(self.rows, keys)
        return self._numbers[key]


# Columns whose figure follows from `_figures_key` of a layer: not from its name or its neighbours.
OF_FIGURES = frozenset({
    "params", "params%", "buffers", "weights", "macs", "macs%", "flops", "convention_ops",
    "convention_ops%", "add", "mul", "comp", "div", "exp", "activations", "activations%",
    "convention_activations", "memory", "read", "write", "intensity",
})  # fmt: skip


def _shapes_key(layer: Layer) -> Hashable:
    outputs = layer.outputs
    if len(outputs) == 1 and not outputs[0].declared and outputs[0].shape:
        return outputs[0].shape
    return tuple([(tensor.shape, tensor.declared) for tensor in outputs]), len(outputs)


def _kind_key(layer: Layer) -> Hashable:
    node = layer.node
    return node.op, id(node.attributes), _shapes_key(layer)


# Columns of text by what the text of a layer follows from; ids are of objects of the report.
TEXT_KEYS: dict[str, Callable[[Layer], Hashable]] = {
    "type": _kind_key,
    "window": _kind_key,
    "output": _kind_key,
    "field": lambda layer: id(layer.field),
}


def _figures_key(row: TableRow) -> tuple[int, ...]:
    """Equal for layers with equal figures, whose costs are one object; () for other rows."""
    if row.kind != "layer":
        return ()
    layer = row.members[0]
    return (
        id(layer.cost), id(layer.convention_kinds), layer.params, layer.activations,
        layer.activation_bytes, layer.convention_activations,
    )  # fmt: skip


def _numbered(rows: list[TableRow], keys: list[Hashable]) -> tuple[list[TableRow], list[int]]:
    """The first row of every key, and for the title and each row the number of its text."""
    numbers: dict[Hashable, int] = {}
    first: list[TableRow] = []
    at = [0]
    for row, key in zip(rows, keys, strict=True):
        number = numbers.get(key) if key else None  # NONE: a row that is no single layer
        if number is None:
            first.append(row)
            number = numbers[key] = len(first)
        at.append(number)
    return first, at


def _visible(texts: list[str]) -> list[str]:
    """The texts with characters escaped that a terminal does not print."""
    if "".join(texts).isprintable():
        return texts
    return [text if text.isprintable() else visible(text) for text in texts]


def _squeezed(columns: tuple[Column, ...], cells: list[_Cells], width: int) -> list[_Cells]:
    """The narrowest layout with texts shortened to the width that is left, names last."""
    widths = [each.width for each in cells]
    spare = sum(widths) + len(GAP) * (len(cells) - 1) - width
    result = list(cells)
    words = [n for n, column in enumerate(columns) if column.kind == "text"]
    for n in sorted(words, key=lambda n: columns[n].name == "name"):
        if spare <= 0:
            break
        least = LEAST_NAME if columns[n].name == "name" else LEAST_TEXT
        room = max(widths[n] - spare, least)
        spare -= max(widths[n] - room, 0)
        texts = [t if len(t) <= room else t[: room - 1] + "…" for t in cells[n].texts]
        result[n] = _Cells(texts, cells[n].at)
    return result


def _lay_out(grid: ReportTable, cells: list[_Cells], style: Style) -> str:
    padded: list[list[str]] = []
    widths = [each.width for each in cells]
    for column, each, width in zip(grid.columns, cells, widths, strict=True):
        pad = str.ljust if column.kind == "text" else str.rjust
        texts = [pad(text, width) for text in each.texts]
        padded.append(texts if isinstance(each.at, range) else [texts[n] for n in each.at])
    head, *body, total = [GAP.join(line).rstrip() for line in zip(*padded, strict=True)]
    rule = style("─" * (sum(widths) + len(GAP) * (len(widths) - 1)), "rule")
    lines = [style(head, "head"), rule]
    if style is plain:
        lines += body
    else:
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
