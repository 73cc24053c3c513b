"""Checks the options with which a Python caller chooses rows and columns of a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from layerscope.errors import UnknownName, UsageError
from layerscope.report.quantities import count_of, shown

LEAST = {"top": 1, "depth": 0}  # of options that are whole numbers, or None


def checked(view: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a view; `defaults` has the default of each one that applies."""
    for name, value in view.items():
        if name not in defaults:
            choices = f"choose from {', '.join(defaults)}" if defaults else "there is none here"
            raise UnknownName("option", name, defaults, f"; {choices}")
        if name in LEAST:
            if value is not None and count_of(value, name) < LEAST[name]:
                raise UsageError(f"--{name} {value}, expected at least {LEAST[name]}")
        elif name == "columns":
            _check_names(value)
        elif isinstance(defaults[name], bool) and not isinstance(value, bool):
            raise UsageError(f"{name} {shown(value)}: expected True or False")
        elif isinstance(defaults[name], str) and not isinstance(value, str):
            raise UsageError(f"{name} {shown(value)}: expected a name")
    return dict(view)


def _check_names(value: object) -> None:
    """Raise for what is no list of names."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise UsageError(f"columns {shown(value)}: expected a list of names, such as ['name']")
