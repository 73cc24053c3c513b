"""Rows of a sweep: one network and its options each, with the figures that were asked for."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from msgspec import Struct

from layerscope.report.results import TableResult

Value: TypeAlias = "int | float | str | None"


class SweepColumn(Struct, frozen=True):
    """A column of the results: its title, and the kind of its texts."""

    title: str
    kind: str = "text"  # count, bytes, time or text


COLUMNS = {
    "name": SweepColumn("network"),
    "source": SweepColumn("source"),
    "options": SweepColumn("options"),
    "status": SweepColumn("status"),
    "error": SweepColumn("error"),
    "params": SweepColumn("params", "count"),
    "macs": SweepColumn("MACs", "count"),
    "flops": SweepColumn("FLOPs", "count"),
    "activations": SweepColumn("activations", "count"),
    "peak": SweepColumn("peak memory", "bytes"),
    "weights": SweepColumn("weights", "bytes"),
    "time": SweepColumn("time", "time"),
    "bounds": SweepColumn("lower bounds"),
    "version": SweepColumn("version"),
    "seconds": SweepColumn("analysis", "time"),
    "key": SweepColumn("key"),
    "json": SweepColumn("json"),
}


class SweepResults(TableResult, frozen=True):
    """The rows of a file of results that fit a condition, in the order asked for."""

    printed_by: ClassVar[str] = "sweep"

    path: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    bounds: tuple[frozenset[str], ...]  # by row: columns whose figures are lower bounds
    total: int  # rows of the file

    def column(self, name: str) -> list[Value]:
        """The values of a column."""
        n = self.columns.index(name)
        return [row[n] for row in self.rows]
