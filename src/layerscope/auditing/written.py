"""How a figure is written in its column, so that another number can be written the same way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from layerscope.documents import figures
from layerscope.documents.figures import RULES
from layerscope.documents.figures import Rule as Rounding
from layerscope.documents.formulas import FormulaError, has_sign, value
from layerscope.sheets.shapes import axes, window

NUMBER = re.compile(
    r"(?P<whole>\d{1,3}(?:(?P<sign>\{,\}|[,_' ])\d{3})(?:(?P=sign)\d{3})*(?!\d)|\d+)"
    r"(?:(?P<point>[.,])(?P<part>\d+))?(?P<exponent>[eE][-+]?\d+)?"
    r"(?P<gap>\s*)(?P<prefix>[KMGTPkmgt万亿](?:i(?=[Bb]))?(?![a-z]))?"
)
EQUALS = re.compile(r".*(?:==|=|≈)\s*", re.DOTALL)
OPEN_REST = re.compile(r"\s*\+\s*\?\s*$")  # 283256.0 + ?
DIGITS = re.compile(r"\d+(?:,\d{3})*")
MOST_DIGITS = 40
Way = tuple[int, Rounding]  # what K counts, and how figures are rounded
WAYS: tuple[Way, ...] = tuple(product((1000, 1024), RULES[:2]))


class NumberStyle(Struct, frozen=True):
    """Decimals, prefix and separators of a printed number."""

    decimals: int = 0
    point: str = "."
    prefix: str = ""
    gap: str = ""  # before the prefix
    separator: str = ""  # of thousands
    power: int = 0
    scale: Fraction = Fraction(1)
    exponent: bool = False
    whole: int = 0  # digits before the point
    digits: int = 0  # without zeros at the ends

    def text(self, number: Fraction, way: Way, significant: int = 0) -> str:
        """The number in this style; "" where it cannot be written so.

        `significant` is the number of digits to which it is rounded, if it is not 0.
        """
        if self.exponent:
            return ""
        base, rounding = way
        step = self.scale * Fraction(1024 if "i" in self.prefix else base) ** self.power
        units = number / step * 10**self.decimals
        unit = 10 ** max(len(str(int(units))) - significant, 0) if significant else 1
        count = int(units / unit + (0 if "cut" in rounding else Fraction(1, 2))) * unit
        if number and not count:
            return ""
        digits = str(count).rjust(self.decimals + 1, "0")
        whole = digits[: len(digits) - self.decimals]
        part = digits[len(whole) :]
        if self.separator:
            whole = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", lambda _: self.separator, whole)
        shown = whole + (self.point + part if part else "")
        return shown + (self.gap + self.prefix if self.prefix else "")


def style_of(text: str) -> NumberStyle | None:
    """The style of the figure in a cell: of the number behind its last equals sign."""
    read, match = figures.read(text), _number(text)
    if read is None or match is None:
        return None
    prefix, whole = match["prefix"] or "", re.sub(r"\D", "", match["whole"])
    return NumberStyle(
        len(match["part"] or ""), match["point"] or ".", prefix, match["gap"] if prefix else "",
        match["sign"] or "", read.power, read.scale, match["exponent"] is not None,
        len(whole), len((whole + (match["part"] or "")).strip("0")),
    )  # fmt: skip


def _number(text: str) -> re.Match[str] | None:
    head = EQUALS.match(text)
    return NUMBER.search(text, head.end() if head else 0)


def rewritten(
    text: str, expected: str, scale: int, others: Sequence[str], ways: Sequence[Way] = ()
) -> Iterator[str]:
    """The cell with the expected figure instead of its own, the likeliest way to write it first.

    `others` are the other cells of its column, and `ways` those in which it may write figures;
    `scale` is that of its heading.
    """
    rest = OPEN_REST.search(text)
    if rest is not None:
        shown = text[: rest.start()]
        yield from (new + rest[0] for new in rewritten(shown, expected, scale, others, ways))
        return
    formula, _, last = expected.rpartition("=")
    number = _value(last)
    match, style = _number(text), style_of(text)
    if number is None or match is None or style is None:
        yield from _with_sizes(text, expected)
        return
    head = EQUALS.match(text)
    read = figures.read(text)
    if head is None and read is not None and read.formula is not None:  # 3x3, or 3*3*64
        yield from _with_sizes(text, expected)
        changed = _formula(text, formula, number)
        if changed is not None and changed != text:
            yield changed
        return
    before = text[: match.start()]
    if head is not None:
        left = _formula(head[0], formula, number)
        if left is None:
            return
        before = left + text[head.end() : match.start()]
    # without a prefix the match takes the blank behind the number, which is no part of it
    end = match.end() if match["prefix"] else match.start("gap")
    for shown in texts(number, scale, style, others, ways):
        yield before + shown + text[end:]


def texts(
    number: Fraction, scale: int, style: NumberStyle | None, others: Sequence[str],
    ways: Sequence[Way] = (),
) -> list[str]:  # fmt: skip
    """Texts of a number: in the style of the cell, of the others, then in full.

    There is none if the column may write it in ways that differ; without any way all are tried.
    """
    siblings = [found for found in map(style_of, others) if found is not None]
    separator = next((each.separator for each in siblings if each.separator), "")
    digits = _significant(others) if any("figures" in rounding for _, rounding in ways) else 0
    if digits and style is not None and style.prefix and style.digits > digits:
        return []  # a total is written with more
    styles = [] if style is None else [style if style.whole > 3 else _parted(style, separator)]
    styles += [_parted(each, separator) for each in dict.fromkeys(siblings)]
    found: dict[str, None] = {}
    for value_ in dict.fromkeys((number / scale, number)):
        for each in styles[:6]:
            shown = [
                each.text(value_, way, digits if each.prefix and "figures" in way[1] else 0)
                for way in ways or WAYS
            ]
            if ways and len(set(shown)) > 1 and not found:
                return []
            found |= dict.fromkeys(shown)
        if value_.denominator == 1:
            found[NumberStyle(separator=separator).text(value_, WAYS[0])] = None
    return [shown for shown in found if shown]


def _parted(style: NumberStyle, separator: str) -> NumberStyle:
    """A style with the separator of its column, if it has none and no prefix."""
    own = style.separator or ("" if style.prefix else separator)
    return replace(style, separator=own)


def _significant(others: Iterable[str]) -> int:
    """How many digits are significant in figures with a prefix: as many as the longest has."""
    styles = (style for text in others if (style := style_of(text)) and style.prefix)
    return max((style.digits for style in styles), default=0)


def _value(text: str) -> Fraction | None:
    plain = text.strip().removesuffix("%").replace(",", "")
    if len(plain) > MOST_DIGITS or not re.fullmatch(r"\d+(?:\.\d+)?(?:[eE][-+]?\d{1,3})?", plain):
        return None
    return Fraction(plain)


def _with_sizes(text: str, expected: str) -> Iterator[str]:
    """A shape or kernel with the sizes that are expected, and its brackets and signs."""
    wanted, printed = re.findall(r"\d+", expected), list(re.finditer(r"\d+", text))
    if re.fullmatch(r"\d+(?:x\d+)*", expected) is None or not (axes(text) or window(text)):
        return
    if len(wanted) == 1 and len({match[0] for match in printed}) == 1:
        wanted = wanted * len(printed)  # 3x3
    if len(wanted) > len(printed) or (len(wanted) == 1 and len(printed) > 1):
        return
    yield _replaced(text, printed[len(printed) - len(wanted) :], wanted)


def _replaced(text: str, matches: list[re.Match[str]], wanted: list[str]) -> str:
    for match, size in reversed(list(zip(matches, wanted, strict=True))):
        text = text[: match.start()] + size + text[match.end() :]
    return text


def _formula(head: str, wanted: str, number: Fraction) -> str | None:
    """The formula of a cell with its equals sign, so that it gives the number; None if unclear."""
    printed = list(DIGITS.finditer(head))
    if wanted:
        sizes = DIGITS.findall(wanted)
        return _replaced(head, printed, sizes) if len(sizes) == len(printed) else None
    if _evaluated(head) == number:
        return head
    found = {
        changed
        for match in printed
        for changed in _one_changed(head, match, number)
        if _evaluated(changed) == number
    }
    return found.pop() if len(found) == 1 else None


def _one_changed(head: str, match: re.Match[str], number: Fraction) -> Iterator[str]:
    """The formula with another whole number in one of its factors, if that gives the number."""
    now, factor = _evaluated(head), Fraction(match[0].replace(",", ""))
    if now:
        other = factor * number / now
        if other.denominator == 1 and other > 0:
            yield head[: match.start()] + str(other) + head[match.end() :]


def _evaluated(head: str) -> Fraction | None:
    text = figures.plain(re.sub(r"\s*(?:==|=|≈)\s*$", "", head))
    if not has_sign(text):
        return None
    try:
        return value(text)
    except FormulaError:
        return None
