"""Rows of modules as torchinfo prints them: a tree of class names, and columns of a fixed width."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from msgspec import Struct

from layerscope.escaping import visible
from layerscope.notations.module_rows import ModuleRow
from layerscope.report.columns import COLUMNS, Column, cell, of_convention, titled
from layerscope.report.numbers import cell_text
from layerscope.report.tree import TableRow
from layerscope.report.types import Layer, Report

NONE = "--"
NAME_WIDTH, INDENT = 40, 5
TITLES = {
    "kernel_size": "Kernel Shape",
    "groups": "Groups",
    "input_size": "Input Shape",
    "output_size": "Output Shape",
    "num_params": "Param #",
    "params_percent": "Param %",
    "mult_adds": "Mult-Adds",
    "trainable": "Trainable",
}
TREE, ASCII_TREE = ("├─", "│    ", "└─"), ("+ ", "|    ", "+ ")


class SummaryOptions(Struct, frozen=True):
    """Columns, width, depth and row settings of a summary."""

    columns: tuple[str, ...]
    col_width: int = 25
    depth: int | None = 3  # None: all
    row_settings: frozenset[str] = frozenset()
    verbose: int = 1


def table_lines(
    report: Report, rows: tuple[ModuleRow, ...], options: SummaryOptions
) -> tuple[str, list[str]]:
    """The rule, and the lines of the header and the rows between rules."""
    table = Table(report, options)
    names = [table.name(row) for row in rows]
    longest = max(
        [len(name) + row.depth * INDENT + 1 for name, row in zip(names, rows, strict=True)],
        default=0,
    )
    width = NAME_WIDTH if longest < NAME_WIDTH else ceil(longest / INDENT) * INDENT
    rule = "=" * (len(options.columns) * options.col_width + width)

    def line(name: str, cells: dict[str, str]) -> str:
        values = [f"{cells.get(column, ''):<{options.col_width}} " for column in options.columns]
        return f"{name:<{width}} {''.join(values)}".rstrip()

    lines = [rule, line(table.header, table.titles), rule]
    for row, name in zip(rows, names, strict=True):
        if table.is_shown(row):
            lines.append(line(table.branch(row.depth) + name, table.cells(row)))
            if options.verbose == 2:
                start = table.branch(row.depth + 1)
                lines += [line(start + visible(own), cells) for own, cells in table.inner(row)]
    return rule, [*lines, rule]


class Table:
    """Cells of the rows of one report."""

    def __init__(self, report: Report, options: SummaryOptions) -> None:
        self.report, self.options = report, options
        self.settings = options.row_settings
        self.total = report.total_params
        counted = of_convention(("macs",), report)[0]
        self.mult_adds = titled((counted,), report)[0]
        self.others = {name: COLUMNS[name] for name in options.columns if name not in TITLES}
        self.titles = {**TITLES, **{name: each.title for name, each in self.others.items()}}
        if counted != "macs":
            self.titles["mult_adds"] = self.mult_adds.title

    @property
    def header(self) -> str:
        """Title of the first column."""
        name = " (var_name)" if "var_names" in self.settings else ""
        return f"Layer (type{name}{':depth-idx' if 'depth' in self.settings else ''})"

    def name(self, row: ModuleRow) -> str:
        """Class, name and position of a row."""
        text = row.class_name
        if "var_names" in self.settings and row.var_name:
            text += f" ({row.var_name})"
        if "depth" in self.settings and row.depth:
            text += f": {row.depth}-{row.depth_index}"
        return visible(text)

    def branch(self, depth: int) -> str:
        """The lines of the tree before a name."""
        first, line, last = ASCII_TREE if "ascii_only" in self.settings else TREE
        if depth < 2:
            return first if depth else ""
        return line * (depth - 1) + last

    def is_shown(self, row: ModuleRow) -> bool:
        """Whether a row is within the depth, and not hidden as recursive."""
        limit = self.options.depth
        hidden = row.is_recursive and "hide_recursive_layers" in self.settings
        return (limit is None or row.depth <= limit) and not hidden

    def cells(self, row: ModuleRow) -> dict[str, str]:
        """The text of every column."""
        whole = row.is_leaf_layer or row.depth == self.options.depth
        members = row.all if whole else row.own
        texts: dict[str, Callable[[], str]] = {
            "kernel_size": lambda: _text(row.kernel_size),
            "groups": lambda: _text(row.groups),
            "input_size": lambda: _text(row.input_size),
            "output_size": lambda: self._output(row),
            "num_params": lambda: self._params(row, whole),
            "params_percent": lambda: self._share(row, whole),
            "mult_adds": lambda: self._value(self.mult_adds, row, members),
            "trainable": lambda: row.trainable,
        }
        return {
            name: texts[name]() if name in texts else self._value(self.others[name], row, members)
            for name in self.options.columns
        }

    def inner(self, row: ModuleRow) -> list[tuple[str, dict[str, str]]]:
        """Parameters of a module, those of the modules in it included, unless it is the model."""
        shown = [each for each in row.params if row.depth or "." not in each[0]]
        found = []
        for at, (name, count, shape) in enumerate(shown):
            sizes = list(shape or ())
            if name == "weight" and len(sizes) > 1:  # inputs before outputs, as in torchinfo
                sizes[:2] = sizes[1::-1]
            sign = "└─" if at == len(shown) - 1 else "├─"
            if "ascii_only" in self.settings:
                sign = "+ "
            text = NONE if shape is None else str(sizes)
            found.append((name, {"kernel_size": text, "num_params": f"{sign}{count:,}"}))
        return found

    def _output(self, row: ModuleRow) -> str:
        is_unknown = bool(row.own) and row.own[-1].output is None
        return "?" if is_unknown and row.is_leaf_layer else _text(row.output_size)

    def _params(self, row: ModuleRow, whole: bool) -> str:
        complete = all(self.report.params_known(layer.node) for layer in row.own)
        return _params(row, whole) if complete or row.num_params else "?"

    def _share(self, row: ModuleRow, whole: bool) -> str:
        if row.is_recursive and self.total:
            return "(recursive)"
        params = row.num_params if whole else row.own_params
        return f"{params / self.total:>7.2%}" if self.total and params > 0 else f"     {NONE}"

    def _value(self, column: Column, row: ModuleRow, members: tuple[Layer, ...]) -> str:
        if not members:
            return NONE
        kind = "layer" if row.is_leaf_layer and len(members) == 1 else "scope"
        found = TableRow(row.path, row.path, row.depth, kind, members)  # type: ignore[arg-type]
        value = cell(column, found, self.report)
        text = cell_text(value, column.kind)
        return NONE if text in ("", "0", "0 B") else visible(text)


def _text(value: object) -> str:
    return str(value) if value else NONE


def _params(row: ModuleRow, whole: bool) -> str:
    if not row.num_params:
        return NONE
    if row.is_recursive:
        return "(recursive)"
    if whole:
        return f"{row.num_params:,}" if row.trainable_params else f"({row.num_params:,})"
    return f"{row.own_params:,}" if row.own_params > 0 else NONE
