"""Numbers as text: exact with separators, short with SI prefixes, bytes, percents."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

CellValue = int | Fraction | str | None
AT_LEAST, AT_MOST, ABOUT = "≥", "≤", "~"  # signs of lower bounds, upper bounds and estimates
UNKNOWN = "?"
PREFIXES = ("", "k", "M", "G", "T", "P", "E")


class MarkedCount(int):
    """A count that is not exact; its text begins with a sign."""

    sign: ClassVar[str] = ""

    def __str__(self) -> str:
        return marked(str(int(self)), self.sign)


class AtLeast(MarkedCount):
    """A count that is a lower bound: something that it should include is unknown."""

    sign = AT_LEAST


class About(MarkedCount):
    """A count that is an estimate, or has a part that is one."""

    sign = ABOUT


class AtLeastAbout(AtLeast):
    """A lower bound with a part that is an estimate."""

    sign = AT_LEAST + ABOUT


class MarkedRatio(Fraction):
    """A ratio that is not exact; its text begins with a sign."""

    sign: ClassVar[str] = ""

    def __str__(self) -> str:
        return marked(super().__str__(), self.sign)


class AtMost(MarkedRatio):
    """A share that is an upper bound: the total that it is of is a lower bound."""

    sign = AT_MOST


class AboutRatio(MarkedRatio):
    """A ratio of estimates."""

    sign = ABOUT


class AtMostAbout(AtMost):
    """A share of a lower bound, one of which is an estimate."""

    sign = AT_MOST + ABOUT


COUNTS = {kind.sign: kind for kind in (AtLeast, About, AtLeastAbout)}
RATIOS = {kind.sign: kind for kind in (AtMost, AboutRatio, AtMostAbout)}


def marked(text: str, sign: str) -> str:
    """A printed figure with its sign; `?` if it is only known to be at least 0."""
    if not sign or not text or text.startswith("<"):
        return text
    if sign.startswith(AT_LEAST) and not text.split()[0].strip("0."):
        return UNKNOWN
    return f"{sign}{text}"


def at_least(text: str, bound: bool) -> str:
    """A printed figure, marked where it is a lower bound."""
    return marked(text, AT_LEAST if bound else "")


def plus_unknown(text: str, count: int, unknown: bool) -> str:
    """A sum in the notation of another program: `+ ?` if a part is unknown, `?` if all is."""
    if not unknown:
        return text
    return f"{text} + {UNKNOWN}" if count else UNKNOWN


def sign_of_share(sign: str) -> str:
    """The sign of a share of a total: of a lower bound an upper bound."""
    return sign.replace(AT_LEAST, AT_MOST)


def share_text(part: int | Fraction, whole: int | Fraction, sign: str = "") -> str:
    """A share in percent; `sign` is that of the whole."""
    return f"{marked(percent_text(Fraction(part) / Fraction(whole)) or '0', sign_of_share(sign))}%"


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
    part, whole = value.numerator, value.denominator
    if whole == 1 and part < 1000:
        return str(part)
    power = 0
    while part >= 1000 * whole and power < len(PREFIXES) - 1:
        whole *= 1000
        power += 1
    for decimals in (2, 1, 0):
        digits = rounded(part * 10**decimals, whole)
        if digits < 1000:
            text = str(digits).rjust(decimals + 1, "0")
            point = len(text) - decimals
            shown = f"{text[:point]}.{text[point:]}" if decimals else text
            return f"{shown}{PREFIXES[power]}"
    if power + 1 < len(PREFIXES):
        return f"1.00{PREFIXES[power + 1]}"
    return f"{rounded(part, whole)}{PREFIXES[power]}"


def rounded(part: int, whole: int) -> int:
    """The quotient as a whole number, halves to even as `round` does."""
    digits, rest = divmod(part, whole)
    return digits + (2 * rest > whole or (2 * rest == whole and digits % 2 == 1))


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


PRINTED_AS_ZERO = 5e-9  # seconds, in microseconds with two decimals


def time_text(seconds: float | None) -> str:
    """A time with three significant digits and a unit; nothing that took time prints as 0.00."""
    if seconds is None:
        return UNKNOWN
    if 0 < abs(seconds) < PRINTED_AS_ZERO:
        return f"{seconds * 1e9:.2g} ns"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        value = seconds / scale
        if abs(value) >= 1 or unit == "us":
            digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
            return f"{value:.{digits}f} {unit}"
    return ""


def rate_of_tokens(rate: float) -> str:
    """Four digits, without an exponent."""
    text = f"{rate:.4g}"
    return f"{float(text):,.0f}" if "e+" in text or rate >= 1000 else text


def percent_text(share: int | Fraction | None) -> str:
    """One decimal; blank for nothing, <0.1 for what would print as 0.0."""
    if not share:
        return ""
    part, whole = share.numerator, share.denominator
    return "<0.1" if 2000 * part < whole else f"{100 * part / whole:.1f}"


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
        text = percent_text(value)
    elif kind == "ratio":
        text = ratio_text(value)
    elif kind == "bytes":
        text = bytes_text(value)
    else:
        text = short_text(value) if short else exact_text(value)
    return marked(text, getattr(value, "sign", ""))


def counted(count: int, what: str) -> str:
    """A count and its noun, in the plural unless it is one."""
    return f"{count:,} {what}{'s' * (count != 1)}"
