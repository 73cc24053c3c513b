"""Parses numbers such as 5M, 2 MiB and 3x224x224 to exact integers of at most 63 bits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from operator import index
from typing import Literal, SupportsIndex

from layerscope.errors import InputError, UsageError
from layerscope.limits import ARRAY_RANK, MOST_SIZE

Unit = Literal["count", "bytes", "seconds"]

MOST_AXES = ARRAY_RANK.most
SECONDS = (1e-12, 1e9)  # of a layer or a network that took time at all
WATTS = (1e-6, 1e9)
DIGITS = 40  # most digits of a number, decimals included

SUFFIXES: dict[Unit, dict[str, int]] = {
    "count": {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12},
    "bytes": {
        "": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
        "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    },
    "seconds": {"": 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "µs": 10**3, "ns": 1},
}  # fmt: skip
EXPECTED: dict[Unit, str] = {
    "count": "a count such as 5000000, 5M or 1.5G (k, M, G, T)",
    "bytes": "bytes such as 2000000, 2MB or 1.5GiB (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)",
    "seconds": "a time such as 5ms, 0.005 or 250us (s, ms, us, ns)",
}
NUMBER = r"(?a)(\d+(?:[,_]\d+)*(?:\.\d+)?)\s*([A-Za-zµ]*)"
WHOLE = r"[+-]?[0-9]+"
REAL = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"


class NumberTooLarge(UsageError):
    """A number above 2^63 - 1."""

    def __init__(self, where: str, value: object) -> None:
        super().__init__(f"{where} {shown(value)}: more than 2^63 - 1, the largest number taken")


def shown(value: object) -> str:
    """A value as errors print it; long ones are cut."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"of {value.bit_length():,} bits"
    text = str(value)
    return text if len(text) <= 100 else f"{text[:40]}… ({len(text):,} characters)"


def quantity(value: object, unit: Unit, where: str) -> int:
    """The whole number for a quantity; `where` begins the error message."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise UsageError(f"{where} {shown(value)}: expected {EXPECTED[unit]}")
    if isinstance(value, int):
        if value < 0:
            raise UsageError(f"{where} {shown(value)}: expected no less than 0")
        return within(value, where)
    match = re.fullmatch(NUMBER, value.strip())
    factor = SUFFIXES[unit].get(match[2]) if match else None
    if match is None or factor is None:
        raise UsageError(f"{where} {shown(value)}: expected {EXPECTED[unit]}")
    digits = match[1].replace(",", "").replace("_", "")
    if len(digits.lstrip("0").partition(".")[0]) > DIGITS:
        raise NumberTooLarge(where, value)
    if len(digits.partition(".")[2]) > DIGITS:
        raise UsageError(f"{where} {shown(value)}: more than {DIGITS} decimals")
    exact = Fraction(digits) * factor
    if exact.denominator != 1:
        raise UsageError(f"{where} {shown(value)}: is no whole number, but {float(exact)}")
    if exact > MOST_SIZE:
        raise NumberTooLarge(where, value)
    return int(exact)


def duration(value: object, where: str) -> float:
    """The seconds of a time such as 5ms, above 0."""
    number = (
        str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    )
    text = number.strip() if isinstance(number, str) else ""
    match = re.fullmatch(NUMBER, text)
    factor = SUFFIXES["seconds"].get(match[2]) if match else None
    if match is None or factor is None or len(text) > DIGITS:
        raise UsageError(f"{where} {shown(value)}: expected {EXPECTED['seconds']}")
    found = float(Fraction(match[1].replace(",", "").replace("_", "")) * factor / 10**9)
    if not 0 < found < MOST_SIZE:
        raise UsageError(f"{where} {shown(value)}: expected a time above 0")
    return found


def within(value: int, where: str) -> int:
    """The number, if it is at most 2^63 - 1; raises otherwise."""
    if abs(value) > MOST_SIZE:
        raise NumberTooLarge(where, value)
    return value


def whole(text: str, where: str) -> int:
    """A whole number of ASCII digits, as options take them."""
    text = text.strip()
    if not re.fullmatch(WHOLE, text):
        raise UsageError(f"{where} {shown(text)}: expected a whole number")
    if len(text.lstrip("+-0")) > DIGITS:
        raise NumberTooLarge(where, text)
    return within(int(text), where)


def real(text: str, where: str) -> float:
    """A finite number of ASCII digits."""
    text = text.strip()
    if not re.fullmatch(REAL, text) or len(text) > DIGITS or abs(float(text)) > MOST_SIZE:
        raise UsageError(f"{where} {shown(text)}: expected a number such as 45 or 4.5")
    return float(text)


def seconds(value: str | float, where: str) -> float:
    """A time in seconds: 0, or within SECONDS."""
    return _measured(value, where, SECONDS, "seconds", zero=True)


def runtime_s(value: str | float, where: str) -> float:
    """The time of a whole network, by which its figures are divided."""
    return _measured(value, where, SECONDS, "seconds")


def watts(value: str | float, where: str) -> float:
    """A power in watts."""
    return _measured(value, where, WATTS, "watts")


def _measured(
    value: str | float, where: str, bounds: tuple[float, float], unit: str, *, zero: bool = False
) -> float:
    number = real(value, where) if isinstance(value, str) else value
    low, high = bounds
    if not (low <= number <= high or (zero and number == 0)):
        least = f"0, or {low:g}" if zero else f"{low:g}"
        raise UsageError(f"{where} {shown(value)}: expected {least} to {high:g} {unit}")
    return number


def sizes(text: str, where: str) -> tuple[int, ...]:
    """The sizes of a shape such as 3x224x224."""
    parts = re.split("[x×,]", text.strip())
    if len(parts) > MOST_AXES:
        raise UsageError(f"{where}: {len(parts):,} axes, expected at most {MOST_AXES}")
    if not all(re.fullmatch(WHOLE, part.strip()) for part in parts):
        raise UsageError(f"{where}: expected sizes such as 3x224x224")
    found = tuple(whole(part, f"{where}:") for part in parts)
    if min(found) < 1:
        raise UsageError(f"{where}: expected every size to be at least 1")
    return found


def named_sizes(texts: tuple[str, ...], where: str) -> dict[str, tuple[int, ...]]:
    """Shapes of inputs from 3x227x227 or NAME=1x3x227x227; "" is the first input."""
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, _, given = text.rpartition("=")
        if name in shapes:
            raise UsageError(f"{where} is given twice for {name or 'the first input'}")
        scalar = bool(name) and not given.strip()
        shapes[name] = () if scalar else sizes(given, f"{where} {shown(text)}")
    return shapes


def count_of(value: object, where: str) -> int:
    """A whole number given by a Python caller: an int, or a numpy or torch integer."""
    if type(value) is int:
        return within(value, where)
    try:
        if isinstance(value, bool) or not isinstance(value, SupportsIndex):
            raise TypeError
        return within(index(value), where)
    except TypeError:
        raise UsageError(f"{where} {shown(value)}: expected a whole number") from None


def shape_of(value: object, where: str) -> tuple[int, ...]:
    """A shape given by a Python caller: integers in a tuple or list, or text like 3x224x224."""
    if isinstance(value, str):
        return sizes(value, f"{where} {shown(value)}")
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        raise UsageError(f"{where} {shown(value)}: expected sizes such as (1, 3, 224, 224)")
    found = list(value)
    if len(found) == 1 and isinstance(found[0], (list, tuple)):
        return shape_of(found[0], where)  # a list with the shape of one input
    if any(isinstance(each, (list, tuple)) for each in found):
        raise UsageError(f"{where}: several shapes, expected a dict of them by the inputs' names")
    if len(found) > MOST_AXES:
        raise UsageError(f"{where}: {len(found):,} axes, expected at most {MOST_AXES}")
    shape = tuple(count_of(each, f"{where}:") for each in found)
    if any(size < 0 for size in shape):
        raise UsageError(f"{where} {shown(shape)}: expected no size below 0")
    return shape


def check_stored(value: object, where: str) -> None:
    """Raise if JSON values contain a number that is not finite or above 2^63 - 1."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, (list, tuple)):
            waiting += each
        elif isinstance(each, float) and not -MOST_SIZE <= each <= MOST_SIZE:
            raise InputError(f"{where}: {each}, expected a finite number below 2^63")
        elif isinstance(each, int) and abs(each) > MOST_SIZE:
            raise InputError(f"{where}: a number {shown(each)}, more than 2^63 - 1")
