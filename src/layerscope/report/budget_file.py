"""The file that budgets stand in: [tool.layerscope.budgets] of a pyproject.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from layerscope.errors import InputError, UsageError
from layerscope.report.budgets import Budget, budget

TABLE = "[tool.layerscope.budgets]"


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
    return {name: budget(name, told, str(file)) for name, told in table.items()}


def _table(file: Path) -> dict[str, Any] | None:
    import tomllib

    try:
        document: Any = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: {error}") from None
    for key in ("tool", "layerscope", "budgets"):
        document = document.get(key)
        if document is None:
            return None
        if not isinstance(document, dict):
            raise UsageError(f"{file}: {key} is no table, expected {TABLE}")
    found: dict[str, Any] = document
    return found
