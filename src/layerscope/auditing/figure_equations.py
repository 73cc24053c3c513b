"""Equations between a figure and the sizes of its layer, and between a share and its figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from math import prod

from layerscope.auditing.conventions import BIASED, ColumnConvention
from layerscope.auditing.equations import Equation
from layerscope.documents.figures import RULES, Figure
from layerscope.documents.figures import Rule as Rounding
from layerscope.sheets.kernels import with_inputs, with_open_kernels
from layerscope.sheets.rules import RECURRENT, rules
from layerscope.sheets.sheet import Claim
from layerscope.sheets.structure import CellPart, RowLayer, with_value

BY_PROGRAM = "Param #"  # heading of Keras, torchsummary and torchinfo
MANY = 4  # rows that show a number of windows
DIGITS = 2  # of a figure, for it to be no chance that another rule gives it


def figure_equations(
    claims: Iterable[Claim], layers: dict[int, RowLayer], convention: ColumnConvention
) -> Iterator[Equation]:
    """One equation for each figure of a column."""
    given = list(claims)
    cut = _has_cut_shapes(given, layers, convention)
    windows = _windows(given, layers, convention)
    tied = tied_layer(layers)
    for claim in given:
        layer, figure = layers.get(claim.row), claim.figure
        if layer is None or figure is None or figure.unit == "%":
            continue
        number = convention.count(layer)
        rule = convention.by_kind.get(layer.kind)
        if number is None or rule is None:
            continue
        reshaped = cut and layer.kind == "flatten" and _keeps(figure, layer, convention)
        if reshaped or _is_left_open(layer, convention) or (layer is tied and not figure.mantissa):
            continue
        cells = layer.cells(*rule.uses) | {claim.cell_part}
        times: tuple[int | Fraction, ...] = (1, _images(layer, convention), *windows)
        holds = (
            any(convention.explains(figure, number * count) for count in times)
            or _is_layers_own(claim, layer, convention)
            or _is_unbiased(figure, layer, convention)
            or _is_of_axis(figure, layer, convention)
        )
        exact = number * convention.heading.scale
        if figure.formula is not None and rule.uses:
            holds = holds and figure.formula in (exact, exact / convention.factor)
        if holds and len({cell[:2] for cell in cells}) == 1:
            continue  # the sizes come from this very cell
        reason = f"{rule.says}: {sizes_text(layer, rule.uses)}" if rule.uses else "it has none"
        yield Equation(
            cells, holds, claim.cell_part, text_of(exact), reason, number,
            () if holds else tuple(convention.counts(layer)),
            holds_with=_another(claim, figure, layer, convention),
        )  # fmt: skip


def _is_left_open(layer: RowLayer, convention: ColumnConvention) -> bool:
    """Whether no rule counts recurrent layers, or layers whose sizes are rounded."""
    # recurrent layers may have cells of another kind, or outputs that are not joined
    open_ = layer.kind in RECURRENT or layer.rounded
    return bool(open_) and layer.kind in convention.unsettled


def tied_layer(layers: dict[int, RowLayer]) -> RowLayer | None:
    """The last layer of a network with embeddings, whose weights may be those of an embedding."""
    if all(layer.kind != "embedding" for layer in layers.values()):
        return None
    weighed = [layer for layer in layers.values() if layer.kind in ("fc", "conv")]
    return weighed[-1] if weighed else None


def _has_cut_shapes(
    claims: Sequence[Claim], layers: dict[int, RowLayer], convention: ColumnConvention
) -> bool:
    """Whether several reshaped outputs have more axes than a table prints.

    They have the elements of their inputs, and not those of their shapes.
    """
    given = [(layers.get(claim.row), claim.figure) for claim in claims]
    found = 0
    for layer, figure in given:
        if layer is None or figure is None or layer.kind != "flatten":
            continue
        number = convention.count(layer)
        if number is not None and not convention.explains(figure, number):
            found += _keeps(figure, layer, convention)
    return found > 1


def _images(layer: RowLayer, convention: ColumnConvention) -> Fraction:
    """The batch that a row prints, beside that of the column."""
    own = layer.printed.get("batch")
    return Fraction(own.value if own is not None else 1, convention.batch)


def _windows(
    claims: Sequence[Claim], layers: dict[int, RowLayer], convention: ColumnConvention
) -> list[int]:
    """How many windows of a map are images of a batch, in rows between shapes of many axes."""
    many_axes = [
        each for each in layers.values() if each.kind == "flatten" and not each.get("hout")
    ]
    if len(many_axes) < MANY or convention.meaning in ("params", "weights", "param_memory"):
        return []
    ratios: Counter[int] = Counter()
    for claim in claims:
        layer, figure = layers.get(claim.row), claim.figure
        number = convention.count(layer) if layer is not None else None
        if number and figure is not None and not convention.explains(figure, number):
            ratio = round(figure.value(convention.base) / number)
            ratios[ratio] += ratio > 1 and convention.explains(figure, number * ratio)
    return [ratio for ratio, count in ratios.items() if count > 1]


def _is_unbiased(figure: Figure, layer: RowLayer, convention: ColumnConvention) -> bool:
    """Whether a rounded figure is that of a convolution whose norm has its biases."""
    rule = convention.by_kind.get(layer.kind)
    if not (layer.kind == "conv" and layer.normed and figure.power and rule):
        return False
    weights = rules("params", "conv")[0].count(layer) if rule.says == BIASED else None
    return weights is not None and convention.explains(figure, convention.scaled(weights))


def _keeps(figure: Figure, layer: RowLayer, convention: ColumnConvention) -> bool:
    got = layer.get("cin", "hin", "win")
    return got is not None and convention.explains(figure, convention.scaled(prod(got)))


def _is_layers_own(claim: Claim, layer: RowLayer, convention: ColumnConvention) -> bool:
    """Whether a program printed a figure by another rule of its kind: no biases, say."""
    figure = claim.figure
    if figure is None or not (claim.labelled or claim.heading.text == BY_PROGRAM):
        return False
    if claim.meaning != "params" or sum(map(str.isdigit, figure.text)) < DIGITS:
        return False
    counts = (rule.count(layer) for rule in rules(claim.meaning, layer.kind) if rule.uses)
    return any(
        count is not None and convention.explains(figure, convention.scaled(count))
        for count in counts
    )


def _is_of_axis(figure: Figure, layer: RowLayer, convention: ColumnConvention) -> bool:
    """Whether the parameters of a norm are those of another axis of its input."""
    if layer.kind != "norm" or convention.meaning not in ("params", "weights", "param_memory"):
        return False
    sizes = layer.get("cout", "hout", "wout") or ()
    return any(convention.explains(figure, convention.scaled(2 * size)) for size in sizes)


def _another(
    claim: Claim, figure: Figure, layer: RowLayer, convention: ColumnConvention
) -> Callable[[CellPart, Fraction], bool | None]:
    """Whether the figure follows from the sizes if a part of a cell had another value."""

    def holds(part: CellPart, value: Fraction) -> bool | None:
        if part == claim.cell_part:
            number = convention.count(layer)
            return number is not None and abs(number - value) <= _step(figure, convention)
        changed = with_value(layer, part, int(value))
        if changed is None:
            return None
        loose = [changed, *with_inputs(changed)] if layer.maybe else [changed]
        numbers = [
            n for each in loose for one in with_open_kernels(each) for n in convention.counts(one)
        ]
        return any(convention.explains(figure, n) for n in numbers) if numbers else None

    return holds


def _step(figure: Figure, convention: ColumnConvention) -> Fraction:
    low, high = figure.interval(convention.base, convention.rounding)
    return high - low


def share_equations(
    shares: Sequence[Claim], figures: Sequence[Claim], total: Fraction, convention: ColumnConvention
) -> Iterator[Equation]:
    """One equation for each percentage that stands beside a figure of its row."""
    by_row = {claim.row: claim for claim in figures if claim.figure is not None}
    for share in shares:
        claim = by_row.get(share.row)
        if claim is None or claim.figure is None or share.figure is None or not total:
            continue
        low, high = claim.figure.interval(convention.base, convention.rounding)
        exact = claim.figure.value(convention.base)
        if not claim.figure.power and not claim.figure.decimals:
            low = high = exact
        least, most = 100 * low / total, 100 * high / total
        holds = any(_meets(share, least, most, how) for how in RULES[:2])
        percent = 100 * exact / total
        reason = f"{text_of(exact)} of {text_of(total)}"
        cells = frozenset({share.cell_part, claim.cell_part})
        yield Equation(
            cells, holds, share.cell_part, f"{float(percent):.2f}%", reason, percent,
            holds_with=partial(_share_with, share, claim, total),
        )  # fmt: skip


def formula_equations(claims: Iterable[Claim]) -> list[Equation]:
    """One equation for each figure behind a formula, in columns where most formulas give theirs."""
    found = []
    for claim in claims:
        figure = claim.figure
        if figure is None or figure.formula is None or "=" not in claim.cell.text:
            continue
        ways = product((1000, 1024), RULES)
        holds = any(figure.stands_for(figure.formula, base, how) for base, how in ways)
        expected = text_of(figure.formula)
        found.append(
            Equation(
                frozenset({claim.cell_part}), holds, claim.cell_part, expected,
                f"the formula before it gives {expected}", figure.formula,
            )
        )  # fmt: skip
    return found if sum(e.holds for e in found) * 2 > len(found) else []


def sum_equations(claims: Sequence[Claim], layers: dict[int, RowLayer]) -> Iterator[Equation]:
    """A total to which the exact figures of its column add up, and which so speaks for them.

    One to which they do not add up is looked at when the wrong figures are found.
    """
    given = [c for c in claims if c.figure is not None and (c.row in layers or c.figure.mantissa)]
    if any(c.figure is not None and not is_exact(c.figure) for c in given):
        return
    numbers = {c.cell_part: c.figure.value() for c in given if c.figure is not None}
    totals = [c for c in given if c.row not in layers]
    whole = sum((numbers[c.cell_part] for c in given if c.row in layers), Fraction())
    for total in totals:
        if not whole or numbers[total.cell_part] != whole:
            continue
        cells = frozenset({*(c.cell_part for c in given if c.row in layers), total.cell_part})
        yield Equation(
            cells, True, total.cell_part, text_of(whole), "the sum of the column", whole,
            holds_with=partial(_sum_with, numbers),
        )  # fmt: skip


def is_exact(figure: Figure) -> bool:
    """Whether a figure is a whole number in full."""
    return not (figure.power or figure.unit or figure.about) and figure.value().denominator == 1


def _sum_with(numbers: dict[CellPart, Fraction], part: CellPart, value: Fraction) -> bool | None:
    """Whether figures still add up to their total with another value in one of them."""
    return numbers[part] == value if part in numbers else None


def _share_with(
    share: Claim, claim: Claim, total: Fraction, part: CellPart, value: Fraction
) -> bool | None:
    if part != claim.cell_part:
        return None
    percent = 100 * value / total
    return any(_meets(share, percent, percent, how) for how in RULES[:2])


def _meets(share: Claim, least: Fraction, most: Fraction, how: Rounding) -> bool:
    if share.figure is None:
        return False
    low, high = share.figure.interval(1000, how)
    return low <= most and least <= high


def text_of(number: Fraction) -> str:
    """An expected figure in full."""
    return f"{int(number):,}" if number.denominator == 1 else f"{float(number):.6g}"


def sizes_text(layer: RowLayer, uses: Sequence[str]) -> str:
    """The sizes that a rule uses, as factors."""
    return " x ".join(str(layer.sizes[name].value) for name in uses if name in layer.sizes)
