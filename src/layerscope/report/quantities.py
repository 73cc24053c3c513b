"""Limits as people write them, 5M or 2 MiB, as exact integers."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, Literal

from layerscope.errors import UsageError

Unit = Literal["count", "bytes"]

SUFFIXES: dict[Unit, dict[str, int]] = {
    "count": {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12},
    "bytes": {
        "": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
        "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    },
}  # fmt: skip
EXPECTED: dict[Unit, str] = {
    "count": "a count such as 5000000, 5M or 1.5G (k, M, G, T)",
    "bytes": "bytes such as 2000000, 2MB or 1.5GiB (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)",
}
NUMBER = re.compile(r"(\d+(?:[,_]\d+)*(?:\.\d+)?)\s*([A-Za-z]*)", re.ASCII)


def quantity(value: Any, unit: Unit, where: str) -> int:
    """The whole number that is meant; `where` begins the message if none is."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise UsageError(f"{where} {value}: expected {EXPECTED[unit]}")
    if isinstance(value, int):
        if value < 0:
            raise UsageError(f"{where} {value}: expected no less than 0")
        return value
    match = NUMBER.fullmatch(value.strip())
    factor = SUFFIXES[unit].get(match[2]) if match else None
    if match is None or factor is None:
        raise UsageError(f"{where} {value}: expected {EXPECTED[unit]}")
    exact = Fraction(match[1].replace(",", "").replace("_", "")) * factor
    if exact.denominator != 1:
        raise UsageError(f"{where} {value}: is no whole number, but {float(exact)}")
    return int(exact)
