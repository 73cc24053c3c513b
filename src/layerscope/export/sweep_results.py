"""The results of a sweep as a table of networks."""

from __future__ import annotations

import msgspec

from layerscope.escaping import json_text
from layerscope.export.grid import Blocks, Cell, Grid, Lines, named
from layerscope.report.numbers import (
    AT_LEAST,
    bytes_text,
    exact_text,
    marked,
    short_text,
    time_text,
)
from layerscope.report.sweep_results import COLUMNS, SweepResults, Value

SCHEMA = 1
UNKNOWN = "?"
KEPT = ("name", "params", "macs", "time", "error")  # columns that a narrow terminal drops last


def headline(results: SweepResults) -> str:
    """How many rows there are, of how many."""
    count = len(results.rows)
    of = "" if count == results.total else f" of {results.total:,}"
    return f"{count:,}{of} networks in {results.path}"


def blocks(results: SweepResults) -> Blocks:
    """One row per network."""
    titles = [_title(name, n) for n, name in enumerate(results.columns)]
    table = [titles]
    for row, bounds in zip(results.rows, results.bounds, strict=True):
        table.append(
            [
                _cell(name, value, name in bounds)
                for name, value in zip(results.columns, row, strict=True)
            ]
        )
    return [Grid(table, names=results.columns), Lines([headline(results)])]


def write_json(results: SweepResults) -> str:
    """The rows by column name."""
    rows = []
    for row, bounds in zip(results.rows, results.bounds, strict=True):
        found: dict[str, object] = dict(zip(results.columns, row, strict=True))
        rows.append({**found, "lower_bounds": sorted(bounds)})
    return json_text({"kind": "results", "schema": SCHEMA, "total": results.total, "rows": rows})


def _title(name: str, n: int) -> Cell:
    column = COLUMNS[name]
    drop = 0 if name in KEPT else n + 1
    return Cell(column.title, column.kind == "text", drop=drop, wraps=name == "error")


def _options_text(options: str) -> str:
    """Options as a reader writes them: `batch 8, dtype fp16`; the text itself if it is no JSON."""
    try:
        given = msgspec.json.decode(options, type=dict[str, object])
    except msgspec.DecodeError:
        return options
    return ", ".join(
        f"{name} {' '.join(map(str, value)) if isinstance(value, list) else value}"
        if value is not True
        else name
        for name, value in given.items()
    )


def _cell(name: str, value: Value, bound: bool) -> Cell:
    kind = COLUMNS[name].kind
    if name == "options":
        options = "" if value is None else str(value)
        return Cell(_options_text(options), True, value=options)
    if kind == "text":
        return named("" if value is None else str(value))
    if value is None:
        return Cell(UNKNOWN if name != "time" else "", value="")
    sign = AT_LEAST if bound else ""
    if isinstance(value, str):
        return Cell(value)
    if kind == "time":
        return Cell(marked(time_text(float(value)), sign), value=value)
    if kind == "bytes":
        return Cell(marked(bytes_text(int(value)), sign), value=value)
    return Cell(
        marked(exact_text(int(value)), sign), short=marked(short_text(int(value)), sign),
        value=value,
    )  # fmt: skip
