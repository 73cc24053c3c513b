"""Columns that print only shares: percentages of a total that stands in the last row.

No cell has the count of a layer. The sizes of the layers give the counts, and these the shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from layerscope.auditing.conventions import (
    ColumnConvention,
    choose,
    with_or_without_biases,
)
from layerscope.auditing.equations import Equation
from layerscope.auditing.figure_equations import text_of
from layerscope.documents.figures import RULES, Figure
from layerscope.sheets.open_ends import GROUPS
from layerscope.sheets.rules import rules
from layerscope.sheets.sheet import Claim
from layerscope.sheets.structure import CellPart, RowLayer, SizeFact, with_value

MOST = 4  # all but one in so many shares are right, or the column is not believed
LEAST = 3  # shares above zero

Span = tuple[Fraction, Fraction]


class SharedColumn(Struct, frozen=True):
    """A column of shares: how its counts are counted, its total, and what that may stand for."""

    convention: ColumnConvention
    total: Claim
    span: Span
    right: bool  # whether the total is the one that the shares are of


def shared_column(
    claims: Sequence[Claim], layers: dict[int, RowLayer], batch: int
) -> SharedColumn | None:
    """A column whose layers have percentages and whose last row has a count; None for others."""
    total = _total(claims, layers)
    given = [c for c in claims if c.row in layers and c.figure is not None]
    filled = [c for c in given if c.figure is not None and c.figure.mantissa]
    figure = total.figure if total is not None else None
    if total is None or figure is None or len(filled) < LEAST:
        return None
    low, high = figure.interval()
    implied = [span for span in _implied(filled, layers) if span[1] < low or high < span[0]]
    spans = [((low, high), True), *((span, False) for span in implied)]
    spans = [(span, right) for span, right in spans if round(_middle(span)) > 0]
    for span, right in spans:
        found = choose(_parts(given, round(_middle(span))), layers, batch)
        tried = [] if found is None else [
            SharedColumn(each, total, within, right)
            for each in with_or_without_biases(found)
            for within in dict.fromkeys((_narrowed(span, each, layers), span))
        ]  # fmt: skip
        best = max(tried, key=lambda column: _right(column, filled, layers), default=None)
        if best is not None and _right(best, filled, layers) * MOST >= len(filled) * (MOST - 1):
            return best
    return None


def infer_groups(columns: Iterable[Sequence[Claim]], layers: dict[int, RowLayer]) -> None:
    """Find the groups of convolutions that print none and whose shares are those of fewer weights.

    All shares of a row must be those of the same groups.
    """
    shares: dict[int, list[tuple[Claim, Span]]] = {}
    for claims in columns:
        total = _total(claims, layers)
        for claim in claims if total is not None and total.figure is not None else ():
            if claim.row in layers and claim.figure is not None and total and total.figure:
                shares.setdefault(claim.row, []).append((claim, total.figure.interval()))
    for row, given in shares.items():
        layer, pair = layers[row], layers[row].get("cin", "cout")
        if layer.kind != "conv" or pair is None or "groups" in layer.sizes:
            continue
        if _has_groups(layer, given, 1):
            continue
        inputs, outputs = pair
        tried = [n for n in (inputs, *GROUPS) if n > 1 and inputs % n == 0 and outputs % n == 0]
        found = next((n for n in tried if _has_groups(layer, given, n)), None)
        if found is not None:
            layer.sizes = {**layer.sizes, "groups": SizeFact(found)}


def _has_groups(layer: RowLayer, given: Sequence[tuple[Claim, Span]], groups: int) -> bool:
    """Whether every share of a row is that of a convolution with so many groups."""
    tried = replace(layer, sizes={**layer.sizes, "groups": SizeFact(groups)})
    for claim, span in given:
        counts = [rule.count(tried) for rule in rules(claim.meaning, layer.kind)]
        if claim.figure is None or not any(
            count is not None and _is_share(claim.figure, Fraction(count), span) for count in counts
        ):
            return False
    return True


def _total(claims: Sequence[Claim], layers: dict[int, RowLayer]) -> Claim | None:
    """The count in the last row of a column of percentages; None for another column."""
    given = [c for c in claims if c.row in layers and c.figure is not None]
    totals = [c for c in claims if c.row not in layers and c.figure and c.figure.unit != "%"]
    if len(totals) != 1 or any(c.figure and c.figure.unit != "%" for c in given):
        return None
    return totals[0] if totals[0].figure and totals[0].figure.mantissa else None


def _narrowed(span: Span, convention: ColumnConvention, layers: dict[int, RowLayer]) -> Span:
    """The total before it was rounded, if the counts of all layers add up to one within a span."""
    whole = _sum(convention, layers.values())
    return (whole, whole) if whole and span[0] <= whole <= span[1] else span


def _sum(convention: ColumnConvention, layers: Iterable[RowLayer]) -> Fraction | None:
    """What the counts of all layers add up to; None if one has none."""
    counts = [_count(convention, each) for each in layers if each.kind in convention.by_kind]
    given = [count for count in counts if count is not None]
    return sum(given, Fraction()) if len(given) == len(counts) else None


def _implied(claims: Sequence[Claim], layers: dict[int, RowLayer]) -> Iterator[Span]:
    """Totals that the count of the largest share would have, by each rule of its kind."""
    largest = max(claims, key=lambda c: c.figure.mantissa if c.figure else Fraction())
    layer, figure = layers[largest.row], largest.figure
    for rule in rules(largest.meaning, layer.kind):
        count = rule.count(layer)
        if figure is not None and count:
            low, high = figure.interval()
            if low <= 0:
                continue
            yield 100 * Fraction(count) / high, 100 * Fraction(count) / low


def _parts(claims: Sequence[Claim], total: int) -> list[Claim]:
    """Shares as parts of a total, which is the unit of their heading."""
    return [
        replace(c, heading=replace(c.heading, scale=total), figure=_percent_as_share(c.figure))
        for c in claims
    ]


def _percent_as_share(figure: Figure | None) -> Figure | None:
    return None if figure is None else replace(figure, unit="", scale=Fraction(1, 100))


def _middle(span: Span) -> Fraction:
    return (span[0] + span[1]) / 2


def _right(column: SharedColumn, claims: Sequence[Claim], layers: dict[int, RowLayer]) -> int:
    """How many shares are those of counts."""
    counts = [(c.figure, _count(column.convention, layers[c.row])) for c in claims]
    return sum(f is not None and n is not None and _is_share(f, n, column.span) for f, n in counts)


def _count(convention: ColumnConvention, layer: RowLayer) -> Fraction | None:
    part = convention.count(layer)
    return None if part is None else part * convention.heading.scale


def _is_share(figure: Figure, count: Fraction, span: Span) -> bool:
    """Whether a percentage is that of a count, in some total within a span."""
    least, most = 100 * count / span[1], 100 * count / span[0]
    return any(
        low <= most and least <= high for low, high in (figure.interval(1000, r) for r in RULES[:2])
    )


def shared_equations(
    claims: Sequence[Claim], layers: dict[int, RowLayer], column: SharedColumn
) -> Iterator[Equation]:
    """One equation for each share, and one for the total."""
    convention, span = column.convention, column.span
    for claim in claims:
        layer, figure = layers.get(claim.row), claim.figure
        rule = convention.by_kind.get(layer.kind) if layer is not None else None
        count = _count(convention, layer) if layer is not None else None
        if layer is None or figure is None or rule is None or count is None:
            continue
        percent = 100 * count / _middle(span)
        cells = layer.cells(*rule.uses) | {claim.cell_part}
        reason = f"{rule.says}: {text_of(count)} of {text_of(Fraction(round(_middle(span))))}"
        yield Equation(
            cells, _is_share(figure, count, span), claim.cell_part,
            f"{float(percent):.{figure.decimals}f} %", reason, percent,
            holds_with=partial(_holds_with, claim, layer, column),
        )  # fmt: skip
    if not column.right:
        at, total = column.total.cell_part, _middle(span)
        reason = "the shares are those of another total"
        yield Equation(frozenset({at}), False, at, f"about {float(total):,.3g}", reason, total)


def _holds_with(
    claim: Claim, layer: RowLayer, column: SharedColumn, part: CellPart, value: Fraction
) -> bool | None:
    """Whether a share follows from the sizes if a part of a cell had another value."""
    if part == claim.cell_part:
        count = _count(column.convention, layer)
        return count is not None and abs(100 * count / _middle(column.span) - value) < 1
    changed = with_value(layer, part, int(value))
    count = _count(column.convention, changed) if changed is not None else None
    if claim.figure is None or count is None:
        return None
    return _is_share(claim.figure, count, column.span)
