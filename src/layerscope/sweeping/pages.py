"""A page of all networks of a file of results, with the reports that fit into it."""

from __future__ import annotations

import base64
import gzip
import os
import re
import shlex
from collections.abc import Callable, Sequence
from typing import TypedDict, Unpack

from msgspec.structs import replace

from layerscope.errors import LayerscopeError
from layerscope.export.page_networks import (
    SCHEMA,
    NetworkRow,
    NetworksData,
    network_columns,
    network_rows,
)
from layerscope.report.numbers import bytes_text
from layerscope.report.sweep_results import SweepResults
from layerscope.sweeping.results import kept_reports, results
from layerscope.version import __version__

MOST_ROWS = 20_000  # of a page
REPORT_BYTES = 8_000_000  # of all reports inside a page
IDENTITY = ("key", "name", "status", "error")


Step = Callable[[str, int, int], None]  # what is done, how many, of how many


def no_step(what: str, done: int, of: int) -> None:
    """No progress is shown."""


class ResultsView(TypedDict, total=False):
    """Which rows and columns, as `results` takes them."""

    where: str
    sort: str
    columns: Sequence[str]
    top: int | None


def networks_page(
    path: str,
    report_bytes: int = REPORT_BYTES,
    progress: Step = no_step,
    **view: Unpack[ResultsView],
) -> str:
    """One HTML document with a row and a dot per network, which needs no other file.

    The reports of the first rows are inside, up to `report_bytes` after compression; a row beyond
    that has the command that writes its page.
    """
    from layerscope.export.page_file import built_page, data_text, filled

    built_page()  # raises before a row is read
    first: ResultsView = {**view, "top": 1}
    shown = results(path, **first).columns
    whole: ResultsView = {**view, "columns": (*shown, *IDENTITY)}
    found = results(path, **whole)
    cut = SweepResults(
        path, shown, tuple(row[: len(shown)] for row in found.rows[:MOST_ROWS]),
        found.bounds[:MOST_ROWS], found.total,
    )  # fmt: skip
    keys, names, status, errors = (
        [str(row[len(shown) + n] or "") for row in found.rows[:MOST_ROWS]]
        for n in range(len(IDENTITY))
    )
    rows = network_rows(cut, keys, names)
    analyzed = [key for key, each in zip(keys, status, strict=True) if each == "ok"]
    reports = _reports(path, analyzed, report_bytes, progress)
    kept = [
        replace(row, error=error, has_report=row.key in reports,
                command="" if row.key in reports or error else _command(path, row))
        for row, error in zip(rows, errors, strict=True)
    ]  # fmt: skip
    title = os.path.basename(path)
    notes = _notes(found, kept, report_bytes)
    data = NetworksData("networks", SCHEMA, __version__, title, notes, network_columns(cut), kept)
    elements = "".join(
        f'\n<script type="text/plain" id="report-{key}">{text}</script>'
        for key, text in reports.items()
    )
    return filled(title, data_text(data), elements)


def _reports(path: str, keys: Sequence[str], most: int, progress: Step) -> dict[str, str]:
    """Data of report pages by key, compressed, for the first rows whose reports fit."""
    from layerscope.api.reporting import page_data
    from layerscope.export.page_file import data_text
    from layerscope.export.report_file import read_bytes

    found: dict[str, str] = {}
    left = most
    if left <= 0:
        return found
    for n, (key, text) in enumerate(zip(keys, kept_reports(path, keys), strict=True)):
        progress("reports", n, len(keys))
        if not re.fullmatch("[0-9a-f]+", key):
            continue
        try:
            report = read_bytes(text, path)
            data = data_text(page_data([report])).encode()
        except LayerscopeError:  # of another version: the row has the command, which says why
            continue
        packed = base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()
        if len(packed) > left:
            break
        left -= len(packed)
        found[key] = packed
    return found


def _command(path: str, row: NetworkRow) -> str:
    """The command that writes a page with this row and its report."""
    file = re.sub(r"[^\w.-]+", "_", row.name) or "network"
    return shlex.join(
        ["layerscope", "results", path, "--where", f"key = '{row.key}'", "-o", f"{file}.html"]
    )


def _notes(found: SweepResults, rows: list[NetworkRow], most: int) -> list[str]:
    """How many rows there are, and which lack a report."""
    count = len(found.rows)
    notes = [f"{count:,} of {found.total:,} rows" if count < found.total else f"{count:,} rows"]
    if count > len(rows):
        notes.append(f"the first {len(rows):,} are on this page")
    lacking = sum(bool(row.command) for row in rows)
    if lacking:
        notes.append(
            f"{lacking:,} without their report, because a page has {bytes_text(most)} of reports "
            "at most (--reports)"
        )
    return notes
