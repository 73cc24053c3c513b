"""A report as a pandas DataFrame: one row per layer, the network's name in `attrs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layerscope.errors import MissingExtra
from layerscope.export.csv import columns_for
from layerscope.export.table import TableView, table
from layerscope.report.types import Report

if TYPE_CHECKING:
    from pandas import DataFrame


def write(report: Report, view: TableView | None = None) -> DataFrame:
    """The frame; counts are Python ints, so they are exact."""
    try:
        import pandas
    except ImportError:
        raise MissingExtra("a DataFrame", "frame") from None
    grid = table(report, view or TableView(), columns_for(report), tree=False)
    names = [column.name for column in grid.columns]
    frame = pandas.DataFrame([grid.cells(row) for row in grid.rows], columns=names)
    frame.attrs.update(
        network=report.name,
        stamp=report.stamp,
        coverage=str(report.coverage),
        notes=list(report.notes),
    )
    return frame
