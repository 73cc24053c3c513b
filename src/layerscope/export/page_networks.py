"""The data inside a page of many networks: a row each, and where to find its report."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from layerscope.escaping import visible
from layerscope.export.grid import Grid
from layerscope.export.sweep_results import blocks
from layerscope.report.sweep_results import COLUMNS, SweepResults, Value

SCHEMA = 1


class NetworkColumn(Struct):
    """A column of the table; figures can be an axis of the chart."""

    name: str
    title: str
    kind: str  # count, bytes, time or text


class NetworkRow(Struct, omit_defaults=True):
    """A network: values to sort by, texts as the command line prints them."""

    key: str
    name: str
    values: list[Value]
    texts: list[str]
    shorts: list[str]  # for a narrow page
    has_report: bool = False  # the page has an element with the data of its report
    command: str = ""  # that writes the report, if the page lacks it
    error: str = ""


class NetworksData(Struct):
    """Everything that a page of networks shows."""

    kind: Literal["networks"]
    schema: int
    version: str
    title: str
    notes: list[str]
    columns: list[NetworkColumn]
    rows: list[NetworkRow]


def network_columns(results: SweepResults) -> list[NetworkColumn]:
    """The columns of the table, with their kinds."""
    return [
        NetworkColumn(name, COLUMNS[name].title, COLUMNS[name].kind) for name in results.columns
    ]


def network_rows(results: SweepResults, keys: list[str], names: list[str]) -> list[NetworkRow]:
    """The rows of a table of results, each with its key and name."""
    grid = blocks(results)[0]
    assert isinstance(grid, Grid)
    return [
        NetworkRow(
            key, visible(name), list(values), [visible(cell.text) for cell in cells],
            [visible(cell.short or cell.text) for cell in cells],
        )
        for key, name, values, cells in zip(keys, names, results.rows, grid.rows[1:], strict=True)
    ]  # fmt: skip
