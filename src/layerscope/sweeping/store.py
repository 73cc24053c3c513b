"""Results in SQLite: one table, one row per network and options, written as they arrive."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from layerscope.errors import UsageError
from layerscope.sweeping.tasks import ResultRow

TYPES = {"int | None": "INTEGER", "float | None": "REAL", "int": "INTEGER", "float": "REAL"}
COLUMNS = ResultRow.__struct_fields__
CREATE = "CREATE TABLE IF NOT EXISTS results ({}) WITHOUT ROWID".format(
    ", ".join(
        f"{name} {TYPES.get(str(ResultRow.__annotations__[name]), 'TEXT')}"
        + (" PRIMARY KEY" if name == "key" else "")
        for name in COLUMNS
    )
)  # sorted by key: the order of arrival leaves no trace
INSERT = f"INSERT OR REPLACE INTO results VALUES ({', '.join('?' * len(COLUMNS))})"


class Store:
    """The file of results while a sweep writes to it."""

    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection
        self.keys = {key for (key,) in connection.execute("SELECT key FROM results")}

    def add(self, row: ResultRow) -> None:
        """Write one row; it is kept if the process is killed right after."""
        with self._connection:
            self._connection.execute(INSERT, tuple(getattr(row, name) for name in COLUMNS))
        self.keys.add(row.key)


@contextmanager
def opened(path: str) -> Iterator[Store]:
    """Open a file of results, or create it. No other sweep can write to it meanwhile."""
    with _locked(path):
        try:
            connection = sqlite3.connect(path, timeout=10)
            try:
                # A row needs no fsync: it outlives the process, though not a loss of power.
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=NORMAL")
                connection.execute(CREATE)
                found = [row[1] for row in connection.execute("PRAGMA table_info(results)")]
                if tuple(found) != COLUMNS:
                    raise UsageError(f"{path}: a table `results` with other columns; give -o")
                yield Store(path, connection)
                connection.commit()
                connection.execute("PRAGMA journal_mode=DELETE")  # one file again
            finally:
                connection.close()
        except sqlite3.DatabaseError as error:
            raise UsageError(f"{path}: {error}; expected a file of results") from None


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Hold the lock of a sweep, a file beside the results, which a killed process releases."""
    lock = f"{path}.lock"
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    try:
        _take(handle, path)
        yield
        os.unlink(lock)
    finally:
        os.close(handle)


def _take(handle: int, path: str) -> None:
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UsageError(f"{path}: another sweep is writing to it") from None
