"""A report as a pandas DataFrame: one row per layer, the network's name in `attrs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layerscope.errors import MissingExtra
from layerscope.escaping import csv_cell
from layerscope.export.csv import columns_for
from layerscope.export.table import TableView, table
from layerscope.report.numbers import CellValue
from layerscope.report.types import Report

if TYPE_CHECKING:
    from pandas import DataFrame


def _kept(value: CellValue) -> CellValue:
    """A value with its sign as text: pandas would drop the sign of a number."""
    return str(csv_cell(value)) if getattr(value, "sign", "") else value


def write(report: Report, view: TableView | None = None) -> DataFrame:
    """The frame; counts are Python ints, so they are exact."""
    try:
        import pandas
    except ImportError:
        raise MissingExtra("a DataFrame", "frame") from None
    grid = table(report, view or TableView(), columns_for(report), tree=False)
    names = [column.name for column in grid.columns]
    rows = [[_kept(value) for value in grid.cells(row)] for row in grid.rows]
    frame = pandas.DataFrame(rows, columns=names)
    frame.attrs.update(
        network=report.name,
        stamp=report.stamp,
        coverage=str(report.coverage),
        notes=list(report.notes),
    )
    return frame
