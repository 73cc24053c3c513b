"""The columns and rows of a report, before a format prints them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

from layerscope.errors import UsageError
from layerscope.report.columns import Column, cell, of_convention, sort_rows, titled
from layerscope.report.groups import grouped
from layerscope.report.tree import TableRow, is_idle, layer_rows, total_row, tree_rows, unused_rows
from layerscope.report.types import Report

CellValue = int | str | Fraction | None


class TableView(Struct, frozen=True):
    """Which rows and columns of a report to print; without `columns` the format chooses them."""

    columns: Sequence[str] = ()
    depth: int | None = None
    sort: str = ""
    top: int | None = None
    fold: bool = True
    by: str = ""  # group rows by module, op or layer; "" prints the module tree
    all: bool = (
        False  # also layers that only compute shapes and constants, which the tree leaves out
    )


class ReportTable(Struct, frozen=True):
    """Columns, rows and the total, with a note if rows were left out."""

    columns: tuple[Column, ...]
    rows: list[TableRow]
    total: TableRow
    report: Report
    note: str = ""

    def cells(self, row: TableRow) -> list[CellValue]:
        """Values of one row, in the order of the columns."""
        return [cell(column, row, self.report) for column in self.columns]


# columns that are blank if rows are grouped by op
PER_LAYER = ("window", "input", "output", "field", "gemm")


def usual(view: TableView, names: Sequence[str], report: Report) -> tuple[str, ...]:
    """The default columns of a format, without those that would be blank in every row."""
    names = of_convention(names, report)
    return tuple(name for name in names if view.by != "op" or name not in PER_LAYER)


def finding_rows(report: Report, view: TableView) -> list[TableRow]:
    """The rows that findings under the table name: none if every layer has its own.

    Of a tree that is cut at some depth these are its innermost rows.
    """
    if view.by and view.by != "layer":
        return grouped(report, view.by)
    if view.depth is None:
        return []
    rows = tree_rows(report, max(view.depth, 1), fold=False)
    after = [row.depth for row in rows[1:]] + [0]
    return [row for row, depth in zip(rows, after, strict=True) if depth <= row.depth]


def table(report: Report, view: TableView, default: Sequence[str], *, tree: bool) -> ReportTable:
    """The table of a view: a tree, or single layers if they are sorted, cut or grouped."""
    if view.top is not None and view.top < 1:
        raise UsageError(f"--top {view.top}, expected at least 1")
    if view.depth is not None and view.depth < 0:
        raise UsageError(f"--depth {view.depth}, expected at least 0")
    columns = titled(view.columns or usual(view, default, report), report)
    note = ""
    if view.by and view.depth is not None:
        raise UsageError("--depth applies to the module tree and cannot be combined with --by")
    if view.by or view.sort or view.top is not None:
        if view.by:
            rows = grouped(report, view.by)
        elif view.depth is None:
            rows = layer_rows(report)
        else:
            rows = tree_rows(report, view.depth, fold=False)
        rows += unused_rows(report)
        count = len(rows)
        if view.sort:
            rows = sort_rows(rows, view.sort, report)
        if view.top is not None and view.top < count:
            rows = rows[: view.top]
            note = f"{view.top} of {count} rows"
    elif tree or view.depth is not None:
        rows = tree_rows(report, view.depth, fold=view.fold, idle=view.all)
        rows += unused_rows(report)
        hidden = 0 if view.all else sum(map(is_idle, report.layers))
        if hidden:
            note = (
                f"{hidden} of {len(report.layers)} layers only compute shapes and constants "
                "before the run and are not shown (--all shows them)"
            )
    else:
        rows = layer_rows(report) + unused_rows(report)
    return ReportTable(columns, rows, total_row(report), report, note)
