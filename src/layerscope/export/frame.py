"""A report as a pandas DataFrame: a layer a row, the network's name in its attrs."""

from __future__ import annotations

from typing import Any

from layerscope.errors import MissingExtra
from layerscope.export.csv import columns_for
from layerscope.export.table import View, table
from layerscope.report.types import Report


def write(report: Report, view: View | None = None) -> Any:
    """The frame; counts are Python ints, so that none is rounded."""
    try:
        import pandas
    except ImportError:
        raise MissingExtra("a DataFrame", "frame") from None
    grid = table(report, view or View(), columns_for(report), tree=False)
    names = [column.name for column in grid.columns]
    frame = pandas.DataFrame([grid.cells(row) for row in grid.rows], columns=names)
    frame.attrs.update(
        network=report.name,
        stamp=report.stamp,
        coverage=str(report.coverage),
        notes=list(report.notes),
    )
    return frame
