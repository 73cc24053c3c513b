"""A report as a grid of columns and rows, before any format prints it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from layerscope.errors import UsageError
from layerscope.report.columns import Column, cell, of_convention, sort_rows, titled
from layerscope.report.groups import grouped
from layerscope.report.tree import TableRow, is_idle, layer_rows, total_row, tree_rows
from layerscope.report.types import Report


class View(Struct, frozen=True):
    """What of a report is asked for. Empty columns mean the format's own choice."""

    columns: tuple[str, ...] = ()
    depth: int | None = None
    sort: str = ""
    top: int | None = None
    fold: bool = True
    by: str = ""  # layers gathered by module or operation, or not at all; "" for the tree
    all: bool = False  # also the layers that a tree leaves out because the run has none of them


class Table(Struct, frozen=True):
    """Chosen columns, rows and the total, with a note where rows were left out."""

    columns: tuple[Column, ...]
    rows: list[TableRow]
    total: TableRow
    report: Report
    note: str = ""

    def cells(self, row: TableRow) -> list[Any]:
        """Values of one row, in the order of the columns."""
        return [cell(column, row, self.report) for column in self.columns]


OF_ONE = (
    "window",
    "input",
    "output",
    "field",
    "gemm",
)  # columns that a kind of layers leaves blank


def usual(view: View, names: Sequence[str], report: Report) -> tuple[str, ...]:
    """The columns that a format would choose, without those that all rows would leave blank."""
    names = of_convention(names, report)
    return tuple(name for name in names if view.by != "op" or name not in OF_ONE)


def table(report: Report, view: View, default: Sequence[str], *, tree: bool) -> Table:
    """The grid of a view: a tree unless sorted, cut or gathered, which need single layers."""
    if view.top is not None and view.top < 1:
        raise UsageError(f"--top {view.top}, expected at least 1")
    if view.depth is not None and view.depth < 0:
        raise UsageError(f"--depth {view.depth}, expected at least 0")
    columns = titled(view.columns or usual(view, default, report), report)
    note = ""
    if view.by and view.depth is not None:
        raise UsageError("--depth is of the tree, and does not go with --by")
    if view.by or view.sort or view.top is not None:
        if view.by:
            rows = grouped(report, view.by)
        elif view.depth is None:
            rows = layer_rows(report)
        else:
            rows = tree_rows(report, view.depth, fold=False)
        count = len(rows)
        if view.sort:
            rows = sort_rows(rows, view.sort, report)
        if view.top is not None and view.top < count:
            rows = rows[: view.top]
            note = f"{view.top} of {count} rows"
    elif tree or view.depth is not None:
        rows = tree_rows(report, view.depth, fold=view.fold, idle=view.all)
        hidden = 0 if view.all else sum(map(is_idle, report.layers))
        if hidden:
            note = (
                f"{hidden} of {len(report.layers)} layers only work out shapes and constants "
                "before the run and are not shown (--all shows them)"
            )
    else:
        rows = layer_rows(report)
    return Table(columns, rows, total_row(report), report, note)
