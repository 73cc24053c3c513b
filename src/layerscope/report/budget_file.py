"""Reads budgets from [tool.layerscope.budgets] of a pyproject.toml."""

from __future__ import annotations

import re
from pathlib import Path

from layerscope.errors import InputError, UsageError
from layerscope.report.budgets import Budget, budget
from layerscope.report.quantities import NumberTooLarge

TABLE = "[tool.layerscope.budgets]"
BUDGET_BYTES = 1 << 18  # of the whole file
BUDGET_DEPTH = 64  # parts of a dotted key, which take quadratic time


def find(folder: Path) -> Path | None:
    """The nearest pyproject.toml with budgets, from a folder upwards."""
    for parent in (folder, *folder.parents):
        file = parent / "pyproject.toml"
        if file.is_file() and _table(file) is not None:
            return file
    return None


def read(file: Path) -> dict[str, Budget]:
    """All budgets of a file, by name, in its order."""
    table = _table(file)
    if not table:
        raise UsageError(f"{file}: no {TABLE}, expected a table a network with its limits")
    try:
        return {name: budget(name, entry, str(file)) for name, entry in table.items()}
    except NumberTooLarge as error:
        raise InputError(str(error)) from None


def _table(file: Path) -> dict[str, object] | None:
    table = _document(file)
    for key in ("tool", "layerscope", "budgets"):
        value = table.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise UsageError(f"{file}: {key} is no table, expected {TABLE}")
        table = value
    return table


def _document(file: Path) -> dict[str, object]:
    import tomllib

    try:
        if file.exists() and not file.is_file():
            raise InputError(f"{file}: no file, expected one with {TABLE}")
        with file.open("rb") as opened:
            data = opened.read(BUDGET_BYTES + 1)
        if len(data) > BUDGET_BYTES:
            raise InputError(f"{file}: more than BUDGET_BYTES = {BUDGET_BYTES:,} bytes")
        if _longest_key(data) > BUDGET_DEPTH:
            raise InputError(f"{file}: a key of more than BUDGET_DEPTH = {BUDGET_DEPTH} parts")
        return tomllib.loads(data.decode())
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise InputError(f"{file}: arrays or tables are nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: {error}") from None
    except ValueError:  # of int(): more than 4,300 digits
        raise InputError(f"{file}: a number of thousands of digits, at most 2^63 - 1") from None


def _longest_key(data: bytes) -> int:
    """An upper bound on the parts of dotted keys in a TOML file, found without parsing it."""
    plain = data.translate(None, b" \t").replace(b"..", b"")
    return max(part.count(b".") for part in re.split(rb"[=\[\]{},\n#]", plain)) + 1
