"""Rows of a file of results by one condition: the file is opened read-only."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from layerscope.errors import FormatError, UnknownName, UsageError
from layerscope.report.sweep_results import COLUMNS, SweepResults, Value

SHOWN = ("name", "params", "macs", "flops", "activations", "peak", "weights")
ALLOWED = (
    sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE,
)  # fmt: skip
REFUSED_FUNCTIONS = ("load_extension", "readfile", "writefile", "edit", "fts3_tokenizer")
MOST_STEPS = 200_000_000  # of SQLite's virtual machine, for one condition


def results(
    path: str | os.PathLike[str],
    *,
    where: str = "",
    sort: str = "name",
    columns: Sequence[str] = (),
    top: int | None = None,
) -> SweepResults:
    """The results of a sweep.

    - `where`: an SQL expression over the columns, such as `"macs < 1e9 and params < 5e6"`.
    - `sort`: a column; `-macs` for the largest first.
    - `columns`: names of the columns; by default the figures, with options and times if several
      rows of a network differ in them.
    - `top`: how many rows.

    """
    file = os.fspath(path)
    chosen = tuple(columns)
    order = sort.removeprefix("-")
    for name in (*chosen, order):
        if name not in COLUMNS:
            raise UnknownName("column", name, COLUMNS, f"; choose from {', '.join(COLUMNS)}")
    if top is not None and top < 1:
        raise UsageError(f"--top {top}, expected at least 1")
    connection = _opened(file)
    try:
        (total,) = connection.execute("SELECT count(*) FROM results").fetchone()
        condition = f"WHERE (\n{where}\n)" if where.strip() else ""
        chosen = chosen or _default_columns(connection, condition, where)
        direction = "DESC" if sort.startswith("-") else "ASC"
        limit = "" if top is None else f"LIMIT {int(top)}"
        query = (
            f"SELECT bounds, {', '.join(chosen)} FROM results {condition} "
            f"ORDER BY {order} IS NULL, {order} {direction}, name, options {limit}"
        )
        found = _rows(connection, query, where)
    except sqlite3.DatabaseError as error:
        raise FormatError(f"{file}: {error}; expected a file of `layerscope sweep`") from None
    finally:
        connection.close()
    bounds = tuple(frozenset(filter(None, str(row[0] or "").split(","))) for row in found)
    return SweepResults(file, chosen, tuple(tuple(row[1:]) for row in found), bounds, total)


def kept_reports(path: str, keys: Sequence[str]) -> Iterator[str]:
    """The report of each row as JSON, read one at a time; "" where a row has none."""
    connection = _opened(path)
    try:
        for key in keys:
            row = connection.execute("SELECT json FROM results WHERE key = ?", (key,)).fetchone()
            yield str(row[0] or "") if row is not None else ""
    except sqlite3.DatabaseError as error:
        raise FormatError(f"{path}: {error}") from None
    finally:
        connection.close()


def _opened(file: str) -> sqlite3.Connection:
    if not os.path.isfile(file):
        raise FormatError(f"{file}: no such file; `layerscope sweep` writes one")
    connection = sqlite3.connect(f"file:{quote(str(Path(file).absolute()))}?mode=ro", uri=True)
    connection.set_authorizer(_authorize)
    steps = iter(range(MOST_STEPS // 100_000))
    connection.set_progress_handler(lambda: int(next(steps, None) is None), 100_000)
    return connection


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Allow what a query of the table needs, and nothing else."""
    if action not in ALLOWED:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and second in REFUSED_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _rows(connection: sqlite3.Connection, query: str, where: str) -> list[tuple[Value, ...]]:
    try:
        return connection.execute(query).fetchall()
    except (sqlite3.OperationalError, sqlite3.DatabaseError, sqlite3.Warning) as error:
        if not where.strip():
            raise
        hint = "" if "interrupted" not in str(error) else "; it takes too long"
        raise UsageError(f"--where {where!r}: {error}{hint}") from None


def _default_columns(connection: sqlite3.Connection, condition: str, where: str) -> tuple[str, ...]:
    """Figures, and options, times and errors if the rows have any."""
    query = (
        "SELECT count(DISTINCT options) > 1, count(time) > 0, sum(status = 'error') > 0 "
        f"FROM results {condition}"
    )
    options, time, failed = (bool(each) for each in _rows(connection, query, where)[0])
    return (
        *SHOWN[:1], *(["options"] if options else []), *SHOWN[1:], *(["time"] if time else []),
        *(["error"] if failed else []),
    )  # fmt: skip
