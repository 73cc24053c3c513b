"""How the columns of a sheet write figures: what the rows show that the row above explains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import prod

from msgspec import Struct

from layerscope.documents.figures import RULES, Figure
from layerscope.documents.figures import Rule as Rounding
from layerscope.sheets.rules import WEIGHTS, rules
from layerscope.sheets.sheet import Claim
from layerscope.sheets.structure import RowLayer

ELEMENT_SIZES = (1, 4, 2)
BASES = (1000, 1024)
SHOWN = 3  # rows from which on a way to write is one of the column

Way = tuple[int, int, Rounding]  # bytes of an element or 1, what K counts by, and the rounding
PARAMS: tuple[Way, ...] = tuple(product((1,), BASES, RULES[:2]))
MEMORY: tuple[Way, ...] = tuple(product(ELEMENT_SIZES, BASES, RULES))


class Writing(Struct, frozen=True):
    """The ways in which a table may write parameters and the elements of outputs."""

    params: tuple[Way, ...] = PARAMS
    memory: tuple[Way, ...] = MEMORY

    def has_params(self, layer: RowLayer, claim: Claim) -> bool:
        """Whether parameters are those of the sizes of a row; also if no rule counts them."""
        figure = claim.figure
        if figure is None or figure.unit == "%" or layer.kind not in WEIGHTS:
            return True
        counts = list(_params(layer, claim))
        return not counts or any(_is_written(figure, counts, way) for way in self.params)

    def has_operations(self, layer: RowLayer, claim: Claim) -> bool:
        """Whether operations are those of the sizes of a row, a multiply-add as one or as two."""
        figure = claim.figure
        if figure is None or figure.unit == "%" or layer.kind not in WEIGHTS:
            return True
        found = [rule.count(layer) for rule in rules("macs", layer.kind) if rule.uses]
        counts = [Fraction(n * many, claim.heading.scale) for n in found if n for many in (1, 2)]
        return not counts or any(_is_written(figure, counts, way) for way in PARAMS)

    def has_elements(self, layer: RowLayer, claim: Claim) -> bool:
        """Whether the elements of an output are printed as the table prints them."""
        counts, figure = list(_elements(layer, claim)), claim.figure
        return figure is None or not counts or any(
            _is_written(figure, counts, way) for way in self.memory
        )  # fmt: skip


def writing_of(layers: Sequence[RowLayer]) -> Writing:
    """The ways that explain most rows; all of them where too few rows show one."""
    params: Counter[Way] = Counter()
    memory: Counter[Way] = Counter()
    for layer in layers:
        for claim in layer.row.claims:
            figure = claim.figure
            if figure is None or not figure.mantissa or figure.unit == "%":
                continue
            if claim.meaning in ("params", "weights") and figure.power and layer.kind in WEIGHTS:
                counts = list(_params(layer, claim))
                params.update(way for way in PARAMS if _is_written(figure, counts, way))
            elif claim.meaning in ("memory", "activations") and _has_shape(layer):
                counts = list(_elements(layer, claim))
                memory.update(way for way in MEMORY if _is_written(figure, counts, way))
    return Writing(_most_counted(params, PARAMS), _most_counted(memory, MEMORY))


def _has_shape(layer: RowLayer) -> bool:
    """Whether a row prints its output, so that no other row has a part in it."""
    return {"cout", "hout", "wout"} <= layer.printed.keys()


def _most_counted(counts: Counter[Way], ways: tuple[Way, ...]) -> tuple[Way, ...]:
    best = max(counts.values(), default=0)
    return tuple(way for way in ways if counts[way] == best) if best >= SHOWN else ways


def _is_written(figure: Figure, counts: Sequence[Fraction], way: Way) -> bool:
    size, base, rounding = way
    return any(figure.stands_for(count * size, base, rounding) for count in counts)


def _params(layer: RowLayer, claim: Claim) -> Iterator[Fraction]:
    """The parameters of a row by each rule of its kind, in the unit of the heading."""
    for rule in rules("params", layer.kind):
        count = rule.count(layer)
        if count is not None:
            yield Fraction(count) / claim.heading.scale
    pair = layer.get("cin", "cout") if layer.kind == "fc" else None
    if pair is not None:  # behind a pool that has no row
        inputs, outputs = pair
        yield Fraction(inputs * outputs, claim.heading.scale)
        yield Fraction((inputs + 1) * outputs, claim.heading.scale)


def _elements(layer: RowLayer, claim: Claim) -> Iterator[Fraction]:
    """The elements of a row's output in the unit of the heading, if its shape is given."""
    sizes = layer.get("cout", "hout", "wout")
    if sizes is not None:
        yield Fraction(prod(sizes)) / claim.heading.scale
