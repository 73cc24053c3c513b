"""Totals: the sum of a column, or what the network gives where cells above it are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Literal

from msgspec import Struct

from layerscope.auditing.conventions import ColumnConvention, Way
from layerscope.documents.figures import RULES, Figure
from layerscope.sheets.sheet import Claim
from layerscope.sheets.structure import RowLayer

Verdict = Literal["right", "follows", "right for the network", "wrong", "open"]


class TotalCheck(Struct, frozen=True):
    """What is said of a total; `expected` is the sum for the network."""

    claim: Claim
    verdict: Verdict
    expected: Fraction | None


def check_total(
    claim: Claim, column: Sequence[Claim], layers: dict[int, RowLayer], convention: ColumnConvention
) -> TotalCheck:
    """Compare a total with the sums of its column, as printed and as the network has them."""
    figure = claim.figure
    if figure is None:
        return TotalCheck(claim, "open", None)
    # a kind of layer that is blank throughout adds nothing, and one without a rule is not counted
    filled = {c.row for c in column if c.figure is not None and c.figure.mantissa}
    counts = [
        (layer, None if layer.kind not in convention.by_kind and row in filled
         else convention.count(layer) if layer.kind in convention.by_kind else Fraction())
        for row, layer in layers.items()
    ]  # fmt: skip
    full = _sum(counts, without_input=False)
    sums = [s for s in (full, _sum(counts, without_input=True)) if s is not None]
    printed = _printed_sum(column, layers, convention)
    mended = _printed_sum(column, layers, convention, mended=True)
    by_network = any(_stands(figure, s, convention) for s in sums) or (
        mended is not None and mended != printed and _overlaps(figure, mended, convention)
    )
    by_cells = printed is not None and _overlaps(figure, printed, convention)
    if by_network:
        return TotalCheck(
            claim, "right" if by_cells or printed is None else "right for the network", full
        )
    if by_cells:
        return TotalCheck(claim, "follows" if full is not None else "right", full)
    if not sums and (printed is None or _lacks(column, layers)):
        return TotalCheck(claim, "open", None)
    return TotalCheck(
        claim, "wrong", full if full is not None else None if printed is None else printed[0]
    )


def _lacks(column: Sequence[Claim], layers: dict[int, RowLayer]) -> bool:
    """Whether a row has no figure although others of its kind have one."""
    filled = {c.row for c in column if c.figure is not None}
    kinds = {layers[row].kind for row in filled if row in layers}
    return any(
        row not in filled and layer.kind in kinds and layer.last is None
        for row, layer in layers.items()
    )


def check_plain_total(
    claim: Claim, column: Sequence[Claim], layers: dict[int, RowLayer]
) -> TotalCheck:
    """Compare a total with the printed figures of a column that no convention explains."""
    figures = [c.figure for c in column if c.row in layers]
    if claim.figure is None or len(figures) < len(layers) or None in figures:
        return TotalCheck(claim, "open", None)
    given = [figure for figure in figures if figure is not None]
    ways = _ways_of_writing(given, (1000, "round"))
    low = high = Fraction()
    for figure in given:
        least, most = _span(figure, ways)
        low, high = low + least, high + most
    least, most = claim.figure.interval()
    right = low <= most and least <= high
    return TotalCheck(claim, "right" if right else "wrong", low if low == high else None)


def _ways_of_writing(figures: Sequence[Figure], usual: Way) -> list[Way]:
    """How figures are written: in the ways in which most are what their formulas give."""
    given = [(f, f.formula) for f in figures if f.power and f.formula is not None]
    counts = {
        (base, how): sum(figure.stands_for(number, base, how) for figure, number in given)
        for base, how in product((1000, 1024), RULES)
    }
    most = max(counts.values())
    return [way for way in counts if counts[way] == most] if 2 * most > len(given) else [usual]


def _span(figure: Figure, ways: Sequence[Way]) -> tuple[Fraction, Fraction]:
    """What a figure stands for: its formula, if it is written like that, or an interval."""
    number = figure.formula
    if number is not None and any(figure.stands_for(number, base, how) for base, how in ways):
        return number, number
    if not figure.power and not figure.decimals:
        return figure.value(), figure.value()
    spans = [figure.interval(base, how) for base, how in ways]
    return min(low for low, _ in spans), max(high for _, high in spans)


def _sum(
    counts: Sequence[tuple[RowLayer, Fraction | None]], without_input: bool
) -> Fraction | None:
    """The sum over all rows; None if one has no figure."""
    total = Fraction()
    for layer, count in counts:
        if without_input and layer.kind == "input":
            continue
        if count is None:
            return None
        total += count
    return total


def _printed_sum(
    column: Sequence[Claim],
    layers: dict[int, RowLayer],
    convention: ColumnConvention,
    *,
    mended: bool = False,
) -> tuple[Fraction, Fraction] | None:
    """What the printed figures can add up to; `mended`, with the right ones for those wrong."""
    low = high = Fraction()
    given = [c.figure for c in column if c.row in layers and c.figure is not None]
    ways = _ways_of_writing(given, (convention.base, convention.rounding))
    for claim in column:
        if claim.row not in layers or claim.figure is None:
            continue
        if claim.figure.unit == "%":
            return None
        count = convention.count(layers[claim.row]) if mended else None
        if count is not None and not convention.explains(claim.figure, count):
            low, high = low + count, high + count
            continue
        least, most = _span(claim.figure, ways)
        low, high = low + least, high + most
    return low, high


def _stands(figure: Figure, number: Fraction, convention: ColumnConvention) -> bool:
    return any(
        figure.stands_for(number, base, how)
        for base in {convention.base, 1000, 1024}
        for how in RULES
    )


def _overlaps(
    figure: Figure, sums: tuple[Fraction, Fraction], convention: ColumnConvention
) -> bool:
    low, high = figure.interval(convention.base, convention.rounding)
    if figure.about:
        low, high = low - (high - low), high + (high - low)
    if sums[0] == sums[1]:
        return _stands(figure, sums[0], convention)
    return low < sums[1] and sums[0] < high
