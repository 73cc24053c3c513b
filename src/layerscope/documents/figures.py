"""A figure as a document prints it: mantissa, decimals, prefix and unit, and what it stands for.

A printed figure stands for an interval: 1.7K is what rounds to it, or what is cut to it, by 1000 or
by 1024. Which of them, the figures of its column decide.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from html import unescape
from itertools import product
from math import ceil, floor
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from layerscope.documents.formulas import LENGTH, FormulaError, has_sign, value

# `figures`: zeros before a prefix are not significant, 800K may be 802,816
# `cut whole`: as Lightning writes, decimals are rounded, and a figure without any is cut
Rule = Literal["round", "cut", "round figures", "cut figures", "cut whole"]
RULES: tuple[Rule, ...] = ("round", "cut", "round figures", "cut figures", "cut whole")

LONGEST = 40  # digits of a number
EXPONENT = 60
POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "b": 3, "t": 4, "p": 5}
WORDS = {
    "thousand": 1,
    "million": 2,
    "millions": 2,
    "billion": 3,
    "billions": 3,
    "bn": 3,
    "trillion": 4,
}
CHINESE = {"万": 10**4, "亿": 10**8}
SECONDS = {"s": 1, "sec": 1, "ms": 10**-3, "us": 10**-6, "µs": 10**-6, "μs": 10**-6, "ns": 10**-9}
# spelling -> what is counted; lower case
UNITS = {
    **dict.fromkeys(("b", "byte", "bytes"), "byte"), **dict.fromkeys(("bit", "bits"), "bit"),
    **dict.fromkeys(("f", "flop", "flops"), "flop"),
    **dict.fromkeys(("mac", "macs", "macc", "maccs", "madd", "madds", "multadds"), "mac"),
    **dict.fromkeys(("param", "params", "parameters", "weights"), "param"),
    **dict.fromkeys(("f/s", "flop/s"), "flop/s"), **dict.fromkeys(("b/s", "byte/s"), "byte/s"),
    **dict.fromkeys(("f/b", "flop/b"), "flop/byte"), **dict.fromkeys(("j", "joule"), "joule"),
    **dict.fromkeys(("w", "watt"), "watt"), "%": "%", **dict.fromkeys(SECONDS, "second"),
}  # fmt: skip
MARKUP = (
    (re.compile(r"(?i)<sup\b[^<>]*>"), "^"),  # 10<sup>6</sup> is a power
    (re.compile(r"(?i)</?(?:b|i|u|strong|em|code|sup|sub|span|font|a)\b[^<>]*>"), ""),
    (re.compile(r"\$\s*\^\s*\{?\\?[*†]+\}?\s*\$|\^\{?\\?[*†]+\}?"), ""),  # a footnote
    (re.compile(r"\\(?:mathbf|textbf|mathrm|text|bf|rm)\b|[`$]|__"), ""),
    (re.compile(r"\\[,;!: ]|\u00a0|\u2009|\u202f"), " "),
    (re.compile(r"\\([%*_#&|])"), r"\1"),
    (re.compile(r"\{,\}"), ","),
)
BOLD = re.compile(r"\*\*([^*]+)\*\*")
REMARK = re.compile(r"\s*[(（][^()（）\d=+*/]*[)）]\s*$")  # (wrong), behind a number
COMMENT = re.compile(r"(?<=\d)\s+(?:#|//|<-|←).*$")  # 480  # four times as many
SCIENTIFIC = re.compile(
    r"(\d+(?:\.\d+)?)\s*(?:[×xX*·]|\\times|\\cdot)\s*10\s*(?:\^|\*\*)\s*[{(]?\s*([-+−]?\d{1,3})\s*[})]?(?!\d)"
)
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
RAISED = re.compile(r"(?<=10)[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
DOTTED = re.compile(r"\d{1,3}(?:\.\d{3}){2,}(?![\d.])")  # 1.234.567
ABOUT = re.compile(r"^(?:~=|~|≈|≃|about\b|approx\.?|ca\.|约)\s*")
NUMBER = re.compile(
    r"(?P<sign>[-+−])?(?P<digits>\d{1,3}(?:[,_' ]\d{3})+(?![\d,])(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)"
    r"(?:[eE](?P<exponent>[-+]?\d{1,3}))?\s*(?P<suffix>[A-Za-zµμ%万亿][A-Za-z/µμ-]*)?"
    r"(?:\s+(?P<word>[A-Za-z]+))?"
)
WITH_COMMA = re.compile(r"(\d+),(\d{1,2}|\d{4,})(?!\d)\s*([A-Za-zµμ%万亿][A-Za-z/]*)?")


class Figure(Struct, frozen=True):
    """A number as it is printed; `exact` where a formula beside it gives the value."""

    text: str
    mantissa: Fraction
    decimals: int = 0  # digits after the point
    power: int = 0  # of the prefix: 1 for k, 2 for M
    prefix: str = ""  # as it is printed
    unit: str = ""  # a value of UNITS, or the word as it is printed
    binary: bool = False  # KiB, MiB: the prefix counts by 1024
    about: bool = False  # ~ before the number
    formula: Fraction | None = None  # the value of the formula before `=`
    decimal_comma: bool = False  # 2,3M
    scale: Fraction = Fraction(1)  # of 万, of ms, of an exponent

    def value(self, base: int = 1000) -> Fraction:
        """The number with its prefix, which counts by `base`."""
        return self.mantissa * self.step_of(base) if self.power else self.mantissa * self.scale

    def step_of(self, base: int) -> Fraction:
        """What one in the mantissa stands for."""
        return self.scale * Fraction(1024 if self.binary else base) ** self.power

    def interval(self, base: int = 1000, rule: Rule = "round") -> tuple[Fraction, Fraction]:
        """What the figure may stand for, from the first to before the second."""
        low, step, whole = self._parts(base, rule)
        return Fraction(low, whole), Fraction(low + step, whole)

    def stands_for(self, number: Fraction | int, base: int = 1000, rule: Rule = "round") -> bool:
        """Whether a number is printed like this; a number halfway may be rounded up or down."""
        low, step, whole = self._parts(base, rule)
        high = low + step
        if self.about:
            low, high = low - step, high + step
        times, printed = number.denominator, number.numerator * whole
        if low * times <= printed < high * times:
            return True
        return self._is_rounded(rule) and printed == high * times

    def _is_rounded(self, rule: Rule) -> bool:
        return rule.startswith("round") or (rule == "cut whole" and self.decimals > 0)

    def _parts(self, base: int, rule: Rule) -> tuple[int, int, int]:
        """The least number that a figure stands for and the step to the next, in parts of one.

        Integers, because every figure of a document is asked for by every rule.
        """
        mantissa, scale, shift = self.mantissa, self.scale, 10**self.decimals
        one = scale.numerator * (1024 if self.binary else base) ** self.power
        step = 2 * mantissa.denominator * one * self._coarseness(rule)
        low = 2 * mantissa.numerator * one * shift - (step // 2 if self._is_rounded(rule) else 0)
        return low, step, 2 * mantissa.denominator * scale.denominator * shift

    def _coarseness(self, rule: Rule) -> int:
        """How many of its last digit a figure may be off by: 100 for 800K of one figure."""
        coarse = self.about or (rule.endswith("figures") and self.power)
        if not coarse or self.decimals or not self.mantissa:
            return 1
        digits = str(self.mantissa.numerator)
        return 10 ** (len(digits) - len(digits.rstrip("0")))  # type: ignore[no-any-return]


@lru_cache(maxsize=1 << 14)
def whole_ranges(figure: Figure) -> tuple[tuple[int, int], ...]:
    """The first and last whole numbers that a figure stands for, rounded or cut, k as 1000 or 1024.

    What `stands_for` says of whole numbers, for the search of kernels, which asks it most.
    """
    found: dict[tuple[int, int], None] = {}
    for base, rule in product((1000, 1024), RULES[:2]):
        low, high = figure.interval(base, rule)
        if figure.about:
            low, high = low - (high - low), high + (high - low)
        last = floor(high) if rule.startswith("round") else ceil(high) - 1
        found[ceil(low), last] = None
    return tuple(found)


def plain(text: str) -> str:
    """A cell without markup."""
    if "&" in text:
        text = unescape(text)
    text = BOLD.sub(r"\1", text)
    for pattern, instead in MARKUP:
        text = pattern.sub(instead, text)
    return text.strip().strip("*").strip()


def read(text: str) -> Figure | None:
    """The figure of a cell, with the formula before its equals sign; None for other text."""
    shown = plain(text)
    if not shown or len(shown) > LENGTH:
        return None
    *formulas, last = re.split(r"\s*(?:==|=|≈|~=)\s*(?=[^=])", shown)
    found = _number(last)
    about = found is not None and re.search(r"≈|~=", shown) is not None
    if found is None and has_sign(last):
        exact = _formula(last)
        if exact is None:
            return None
        found = Figure(shown, exact, formula=exact)
    if found is None:
        return None
    given = next((v for v in map(_formula, reversed(formulas)) if v is not None), found.formula)
    return Figure(
        shown, found.mantissa, found.decimals, found.power, found.prefix, found.unit, found.binary,
        found.about or about, given, found.decimal_comma, found.scale,
    )  # fmt: skip


def _formula(text: str) -> Fraction | None:
    if not has_sign(text):
        return None
    try:
        return value(text)
    except FormulaError:
        return None


def _number(text: str) -> Figure | None:
    """One number with its suffix, and nothing else but a word behind it."""
    about = ABOUT.match(text)
    rest = text[about.end() :] if about else text
    rest = REMARK.sub("", COMMENT.sub("", rest))
    rest = RAISED.sub(lambda m: "^" + m[0].translate(SUPERSCRIPTS), rest)
    power = SCIENTIFIC.fullmatch(rest.strip())
    if power:
        rest = f"{power[1]}e{power[2].replace('−', '-')}"
    if DOTTED.match(rest.strip()):
        rest = rest.replace(".", "")
    comma = WITH_COMMA.fullmatch(rest.strip())
    if comma:
        rest = f"{comma[1]}.{comma[2]}{comma[3] or ''}"
    match = NUMBER.fullmatch(rest.strip())
    if match is None:
        return None
    digits = re.sub("[,_' ]", "", match["digits"]).rstrip(".")
    exponent = int(match["exponent"] or 0)
    if len(digits) > LONGEST or abs(exponent) > EXPONENT:
        return None
    suffix = _with_word(_suffix(match["suffix"] or ""), match["word"])
    if suffix is None:
        return None
    number = Fraction(digits if not digits.startswith(".") else "0" + digits)
    return Figure(
        text,
        -number if match["sign"] in ("-", "−") else number,
        len(digits.partition(".")[2]),
        about=about is not None,
        decimal_comma=comma is not None,
        scale=Fraction(10) ** exponent * suffix.scale,
        power=suffix.power,
        prefix=suffix.prefix,
        unit=suffix.unit,
        binary=suffix.binary,
    )


class _Suffix(Struct, frozen=True):
    prefix: str = ""
    power: int = 0
    unit: str = ""
    binary: bool = False
    scale: Fraction = Fraction(1)


def _with_word(suffix: _Suffix | None, word: str | None) -> _Suffix | None:
    """A suffix with the unit behind it: 138M parameters; None for a word that is no unit."""
    if suffix is None or word is None:
        return suffix
    unit = UNITS.get(word.lower())
    return None if unit is None or suffix.unit else replace(suffix, unit=unit)


def _suffix(text: str) -> _Suffix | None:
    """Prefix and unit of what stands behind a number; None for a word that is no unit."""
    if not text:
        return _Suffix()
    if text[0] in CHINESE:
        return _Suffix(text[0], scale=Fraction(CHINESE[text[0]]), unit=UNITS.get(text[1:], ""))
    lower = text.lower().removesuffix(".")
    if text in SECONDS:
        return _Suffix(unit="second", scale=Fraction(str(SECONDS[text])))
    if lower in WORDS:
        return _Suffix(text, WORDS[lower])
    prefix, rest = lower[:1], lower[1:]
    if lower in UNITS and not (lower == "b" and text == "b"):
        return _Suffix(unit=UNITS[lower])
    if prefix in POWERS and rest == "":
        return _Suffix(text[:1], POWERS[prefix])
    if prefix in POWERS and rest[:1] == "i" and rest[1:] in ("b", "byte", "bytes"):
        return _Suffix(text[:2], POWERS[prefix], "byte", True)
    if prefix in POWERS and rest in UNITS and UNITS[rest] != "second":
        return _Suffix(text[:1], POWERS[prefix], UNITS[rest])
    return None
