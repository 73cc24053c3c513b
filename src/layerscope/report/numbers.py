"""Numbers as text: exact with separators, short with SI prefixes, bytes, percents."""

from __future__ import annotations

from fractions import Fraction

CellValue = int | Fraction | str | None
PREFIXES = ("", "k", "M", "G", "T", "P", "E")


class AtLeast(int):
    """A count that is a lower bound: something that it should include is unknown."""

    def __str__(self) -> str:
        return f"≥{int(self)}"


def at_least(text: str, bound: bool) -> str:
    """A printed figure, marked where it is a lower bound."""
    return f"≥{text}" if bound and text else text


def decimal(value: int | Fraction | None) -> int | float | str | None:
    """A fraction as a decimal where that ends, else as text such as "1/3"."""
    if not isinstance(value, Fraction):
        return value
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return float(value) if rest == 1 else str(value)


def exact_text(value: int | Fraction) -> str:
    """All digits, in groups of three."""
    return f"{int(value):,}"


def short_text(value: int | Fraction) -> str:
    """Three significant figures with an SI prefix; whole numbers below 1000 in full."""
    if value < 1000 and (isinstance(value, int) or value.denominator == 1):
        return f"{int(value)}"
    power = 0
    scaled = Fraction(value)
    while scaled >= 1000 and power < len(PREFIXES) - 1:
        scaled /= 1000
        power += 1
    for decimals in (2, 1, 0):
        limit = 1000 if decimals == 0 else 10 ** (3 - decimals)
        rounded = Fraction(round(scaled * 10**decimals), 10**decimals)
        if rounded < limit:
            return f"{float(rounded):.{decimals}f}{PREFIXES[power]}"
    if power + 1 < len(PREFIXES):
        return f"1.00{PREFIXES[power + 1]}"
    return f"{float(scaled):.0f}{PREFIXES[power]}"


def bytes_text(value: int | Fraction) -> str:
    """Bytes in powers of 1000: 25.7 MB."""
    if value < 1000:
        return f"{int(value)} B"
    text = short_text(value)
    return f"{text[:-1]} {text[-1]}B"


def rate_text(value: float, unit: str) -> str:
    """A rate in three significant figures, such as 19.5 TFLOP/s."""
    text = short_text(int(value))
    return f"{text[:-1]} {text[-1]}{unit}" if text[-1:].isalpha() else f"{text} {unit}"


def percent_text(share: int | Fraction | None) -> str:
    """One decimal; blank for nothing, <0.1 for what would print as 0.0."""
    if not share:
        return ""
    if share < Fraction(5, 10000):
        return "<0.1"
    return f"{float(share * 100):.1f}"


def ratio_text(value: int | Fraction | None) -> str:
    """Two decimals below 10, one below 100, else none."""
    if value is None:
        return ""
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    return f"{float(value):.{decimals}f}"


def cell_text(value: CellValue, kind: str, *, short: bool = False) -> str:
    """A cell of a printed table. Zero is printed, None is blank."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if kind == "percent":
        return percent_text(value)
    if kind == "ratio":
        return ratio_text(value)
    if kind == "bytes":
        text = bytes_text(value)
    else:
        text = short_text(value) if short else exact_text(value)
    return at_least(text, isinstance(value, AtLeast))


def counted(count: int, what: str) -> str:
    """A count and its noun, in the plural unless it is one."""
    return f"{count:,} {what}{'s' * (count != 1)}"
