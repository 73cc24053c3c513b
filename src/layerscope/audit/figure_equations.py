"""Equations between a figure and the sizes of its layer, and between a total and the figures above it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from layerscope.audit.conventions import Convention
from layerscope.audit.equations import Equation
from layerscope.audit.sheet import Claim
from layerscope.audit.structure import Cells, Layer


def figure_equations(
    claims: Iterable[Claim], layers: dict[int, Layer], convention: Convention
) -> Iterator[Equation]:
    """One equation for each figure of a column."""
    for claim in claims:
        layer, figure = layers.get(claim.row), claim.figure
        if layer is None or figure is None or figure.unit == "%":
            continue
        number = convention.count(layer)
        rule = convention.by_kind.get(layer.kind)
        if number is None or rule is None:
            continue
        cells = layer.cells(*rule.uses) | {claim.place}
        holds = convention.explains(figure, number)
        exact = number * convention.heading.scale
        if figure.formula is not None and rule.uses:
            holds = holds and figure.formula in (exact, exact / convention.factor)
        if len(cells) == 1 and holds:
            continue  # the sizes come from this very cell
        reason = f"{rule.says}: {_sizes(layer, rule.uses)}" if rule.uses else "it has none"
        yield Equation(cells, holds, claim.place, text_of(exact), reason, number)


def share_equations(
    claims: Sequence[Claim], layers: dict[int, Layer], convention: Convention
) -> Iterator[Equation]:
    """One equation for each percentage of a column, of the figures that a convention gives."""
    counts = {row: convention.count(layer) for row, layer in layers.items()}
    total = sum((count for count in counts.values() if count is not None), Fraction())
    if not total:
        return
    for claim in claims:
        layer, number = layers.get(claim.row), counts.get(claim.row)
        if layer is None or claim.figure is None or number is None:
            continue
        rule = convention.by_kind[layer.kind]
        share = 100 * number / total
        holds = any(claim.figure.stands_for(share, 1000, how) for how in ("round", "cut"))
        cells: Cells = layer.cells(*rule.uses) | {claim.place}
        reason = f"{text_of(number)} of {text_of(total)}"
        yield Equation(cells, holds, claim.place, f"{float(share):.2f}%", reason, share)


def text_of(number: Fraction) -> str:
    """An expected figure in full."""
    return f"{int(number):,}" if number.denominator == 1 else f"{float(number):.6g}"


def _sizes(layer: Layer, uses: Sequence[str]) -> str:
    return " x ".join(str(layer.sizes[name].value) for name in uses if name in layer.sizes)
