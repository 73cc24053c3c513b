"""Merge the tables of several modules into one, such as the ops of all families."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Value = TypeVar("Value")


def merge_tables(kind: str, *tables: Mapping[str, Value]) -> dict[str, Value]:
    """One table with the entries of all; raises ValueError if a name is in two of them."""
    merged: dict[str, Value] = {}
    for table in tables:
        twice = merged.keys() & table.keys()
        if twice:
            raise ValueError(f"{kind} defined twice: {', '.join(sorted(twice))}")
        merged.update(table)
    return merged
