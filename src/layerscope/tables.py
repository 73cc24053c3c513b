"""Merge the tables of several modules into one, such as the ops of all families."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def merge_tables(kind: str, *tables: Mapping[Key, Value]) -> dict[Key, Value]:
    """One table with the entries of all; raises ValueError if a name is in two of them."""
    merged: dict[Key, Value] = {}
    for table in tables:
        twice = merged.keys() & table.keys()
        if twice:
            raise ValueError(f"{kind} defined twice: {', '.join(sorted(map(str, twice)))}")
        merged.update(table)
    return merged
