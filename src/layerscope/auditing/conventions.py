"""The convention of a column: the rules, unit and rounding that explain most of its cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from layerscope.documents.figures import RULES, Figure
from layerscope.documents.figures import Rule as Rounding
from layerscope.documents.headings import Heading, Meaning
from layerscope.sheets.kinds import Kind, is_block, plain
from layerscope.sheets.rules import Rule, factors, rules
from layerscope.sheets.sheet import Claim
from layerscope.sheets.structure import RowLayer

MANY_PARTS = 10**9  # of a step: what is cut off is less than one
MANY = 5  # rows from which on one rule for a kind that is not named is believed
FEW = 4  # figures with a prefix, below which they show no base or rounding
BIASED = "weights and biases"
SLIPS = 3  # figures from which on the same slips are no chance
SAMPLE = 60  # rows of each kind by which a convention is chosen
Key = tuple[Meaning, str]  # of a column: its meaning, and its heading unless labels say the meaning
Way = tuple[int, Rounding]  # of writing figures: what K counts, and how they are rounded


class ColumnConvention(Struct, frozen=True):
    """How the figures of a column are counted and written."""

    heading: Heading
    meaning: Meaning
    by_kind: dict[Kind, Rule]
    factor: int = 1
    batch: int = 1
    base: int = 1000
    rounding: Rounding = "round"
    explained: int = 0
    of: int = 0
    written: int = FEW  # explained figures with a prefix, which show base and rounding
    unsettled: tuple[Kind, ...] = ()  # kinds without a figure that their rule explains
    tied: tuple[Way, ...] = ()  # ways of writing that explain as many figures

    def count(self, layer: RowLayer) -> Fraction | None:
        """The figure of a layer by this convention, in the unit of the heading."""
        return self._by_rule(self.by_kind.get(layer.kind), layer)

    def counts(self, layer: RowLayer) -> list[Fraction]:
        """The figures that a layer may have, by every rule of a kind that shows none."""
        rule = self.by_kind.get(layer.kind)
        tried = rules(self.meaning, layer.kind) if layer.kind in self.unsettled else (rule,)
        return [count for each in tried if (count := self._by_rule(each, layer)) is not None]

    def _by_rule(self, rule: Rule | None, layer: RowLayer) -> Fraction | None:
        if layer.kind == "unknown" and is_block(plain(layer.row.named)):
            return None  # the figures of several layers
        found = rule.count(layer) if rule else None
        if found is None:
            return None
        return self.scaled(found)

    def scaled(self, count: int | Fraction) -> Fraction:
        """A count of elements in the unit of the heading."""
        return Fraction(count) * self.factor * self.batch / self.heading.scale

    def explains(self, figure: Figure, number: Fraction) -> bool:
        """Whether a figure is how this convention prints a number."""
        open_ = figure.power and self.written < FEW
        ways = self.ways(prefixed=True) if open_ else (way_of(self),)
        return any(figure.stands_for(number, base, how) for base, how in ways)

    def ways(self, *, prefixed: bool) -> tuple[Way, ...]:
        """How figures may be written: in one way, unless those of the column show several."""
        own = way_of(self)
        if self.written >= FEW or not prefixed:
            return self.tied or (own,)
        return tuple(dict.fromkeys((own, *product((1000, 1024), (*RULES[:2], self.rounding)))))

    def text(self) -> str:
        """The convention in words."""
        kinds: dict[str, list[str]] = {}
        for kind, rule in self.by_kind.items():
            kinds.setdefault(rule.says, []).append(kind.replace("_", " "))
        parts = [f"{says} ({', '.join(names)})" for says, names in kinds.items() if says != "none"]
        times = f" x {self.factor}" if self.factor != 1 else ""
        batch = f" x batch {self.batch}" if self.batch != 1 else ""
        unit = f", K by {self.base}" if self.base != 1000 else ""
        cut = {
            "round": "", "cut": ", cut", "round figures": ", to significant figures",
            "cut whole": ", cut without decimals", "cut figures": ", cut to significant figures",
        }[self.rounding]  # fmt: skip
        return "; ".join(parts or ["no figure"]) + times + batch + unit + cut


def choose(
    claims: Sequence[Claim], layers: dict[int, RowLayer], batch: int | None = None
) -> ColumnConvention | None:
    """The convention that explains most figures of a column; `batch` if it is given already."""
    return next(iter(choices(claims, layers, batch)), None)


def choices(
    claims: Sequence[Claim], layers: dict[int, RowLayer], batch: int | None = None
) -> list[ColumnConvention]:
    """Conventions that explain most figures of a column, all as many; the likeliest first."""
    given = _sample(claims, layers)
    if not given:
        return []
    heading, meaning = claims[0].heading, claims[0].meaning
    batches = (batch, 1) if batch else _batches(layers.values(), given)
    counted = _counted(meaning, given)
    best: list[ColumnConvention] = []
    for base, rounding in _writings(given):
        bounds = [_bounds(figure, base, rounding) for _, figure in given]
        for factor, images in product(factors(meaning, heading.unit), batches):
            if meaning in ("params", "weights") and images != 1:
                continue
            scale = _whole(Fraction(factor * images) / heading.scale)
            empty = ColumnConvention(heading, meaning, {}, factor, images, base, rounding)
            found = _with_rules(empty, counted, bounds, scale)
            if not best or found.explained > best[0].explained:
                best = [found]
            elif found.explained == best[0].explained:
                best.append(found)
    filled = [(layer, c.figure) for c in claims if c.figure and (layer := layers.get(c.row))]
    if len(best) > 1 and len(filled) > len(given):  # rows that are not in the sample decide
        best.sort(key=lambda each: -_written(each, filled))
    return [replace(each, written=_written(each, given)) for each in best]


def by_slips(
    convention: ColumnConvention, claims: Sequence[Claim], layers: dict[int, RowLayer]
) -> ColumnConvention | None:
    """Weights and biases, if all figures that differ are those of usual slips; else None.

    Filters of depth 1 for those as deep as their input, or one bias for all outputs: a column
    in which nothing but zeros is right shows what it means by its mistakes.
    """
    if convention.meaning != "params":
        return None
    by_kind = {
        kind: next((way for way in rules("params", kind) if way.says == BIASED), rule)
        for kind, rule in convention.by_kind.items()
    }
    found = replace(convention, by_kind=by_kind, unsettled=())
    slips = 0
    for claim in claims:
        layer, figure = layers.get(claim.row), claim.figure
        number = found.count(layer) if layer is not None else None
        if figure is None or layer is None or number is None or found.explains(figure, number):
            continue
        if figure.power or figure.value() not in _slips_of(layer):
            return None
        slips += 1
    return found if slips >= SLIPS else None


def _slips_of(layer: RowLayer) -> tuple[int, ...]:
    """Numbers of parameters that authors compute by mistake."""
    filters, inner = layer.get("kh", "kw", "cout"), layer.get("cin", "hin", "win", "cout")
    if layer.kind == "conv" and filters is not None:
        return (prod(filters) + filters[-1],)
    return (prod(inner) + 1,) if layer.kind == "fc" and inner is not None else ()


def agreed(columns: Mapping[Key, Sequence[ColumnConvention]]) -> dict[Key, ColumnConvention]:
    """Of equally good conventions of each column, the one that writes as most other columns do.

    `columns` are those of figures in one unit, which a document writes in one way as a rule.
    """
    votes = Counter(way for found in columns.values() for way in {way_of(each) for each in found})
    written: Counter[Way] = Counter()
    chosen = {}
    for key, found in columns.items():
        most = max(votes[way_of(each)] for each in found)
        best = [each for each in found if votes[way_of(each)] == most]
        chosen[key] = replace(best[0], tied=narrowest(map(way_of, best)))
        written[way_of(best[0])] += best[0].written
    return {key: replace(each, written=written[way_of(each)]) for key, each in chosen.items()}


def narrowest(ways: Iterable[Way]) -> tuple[Way, ...]:
    """Ways of writing without those to significant digits where every digit may count."""
    found = dict.fromkeys(ways)
    wider = {(base, f"{rounding} figures") for base, rounding in found}
    return tuple(way for way in found if way not in wider)


def way_of(convention: ColumnConvention) -> Way:
    """How a column writes figures."""
    return convention.base, convention.rounding


def _writings(given: Sequence[tuple[RowLayer, Figure]]) -> Iterable[tuple[int, Rounding]]:
    """What a prefix may count by, and how figures may be rounded; without a prefix that is less."""
    if any(figure.power for _, figure in given):
        return product((1000, 1024), RULES)
    return product((1000,), RULES[:2])


def _whole(number: Fraction) -> Fraction | int:
    """An integer where there is one: it is faster."""
    return number.numerator if number.denominator == 1 else number


def _sample(claims: Sequence[Claim], layers: dict[int, RowLayer]) -> list[tuple[RowLayer, Figure]]:
    """Layers with figures, the first of each kind whose figures can be counted."""
    counts: Counter[Kind] = Counter()
    found = []
    for claim in claims:
        layer, figure = layers.get(claim.row), claim.figure
        if layer is not None and figure is not None and counts[layer.kind] < SAMPLE:
            ways = rules(claim.meaning, layer.kind)
            counts[layer.kind] += any(rule.uses and rule.count(layer) is not None for rule in ways)
            found.append((layer, figure))
    return found


def _written(convention: ColumnConvention, given: Sequence[tuple[RowLayer, Figure]]) -> int:
    """How many figures with a prefix a convention explains."""
    found = 0
    for layer, figure in given:
        number = convention.count(layer) if figure.power else None
        found += number is not None and figure.stands_for(
            number, convention.base, convention.rounding
        )
    return found


# kind -> its rows in the sample, and the counts of these rows by each rule
Counted = dict[Kind, tuple[list[int], list[tuple[Rule, list[int | Fraction | None]]]]]


def _counted(meaning: Meaning, given: Sequence[tuple[RowLayer, Figure]]) -> Counted:
    found: Counted = {}
    for kind in dict.fromkeys(layer.kind for layer, _ in given):
        rows = [n for n, (layer, _) in enumerate(given) if layer.kind == kind]
        ways = rules(meaning, kind)
        found[kind] = (rows, [(rule, [rule.count(given[n][0]) for n in rows]) for rule in ways])
    return found


def _bounds(figure: Figure, base: int, rounding: Rounding) -> tuple[Fraction, Fraction]:
    """What a figure may stand for, both ends included."""
    low, high = figure.interval(base, rounding)
    step = high - low
    if figure.about:
        return low - step, high + step
    return low, high if rounding.startswith("round") else high - step / MANY_PARTS


def _batches(
    layers: Iterable[RowLayer], given: Sequence[tuple[RowLayer, Figure]]
) -> tuple[int, ...]:
    """Batch sizes that a column may count: of its shapes, or a factor of all its figures."""
    found = Counter(layer.sizes["batch"].value for layer in layers if "batch" in layer.sizes)
    shared = Counter(
        round(figure.value() / prod(size))
        for layer, figure in given
        if (size := layer.get("cout", "hout", "wout")) and all(size)
    )
    if found:
        return (found.most_common(1)[0][0], 1)
    likely = [size for size, _ in shared.most_common(1) if 1 < size <= 4096]
    return (1, *likely)


def _with_rules(
    convention: ColumnConvention,
    counted: Counted,
    bounds: Sequence[tuple[Fraction, Fraction]],
    scale: Fraction | int,
) -> ColumnConvention:
    """The convention with the best rule for each kind of layer; `scale` is what one counts."""
    by_kind: dict[Kind, Rule] = {}
    explained = of = 0
    unsettled = []
    equal: dict[Kind, list[Rule]] = {}  # rules that explain as many figures
    for kind, (rows, ways) in counted.items():
        best, score = None, -1
        for rule, counts in ways:
            right = sum(
                count is not None and bounds[n][0] <= count * scale <= bounds[n][1]
                for n, count in zip(rows, counts, strict=True)
            )
            equal[kind] = [rule] if right > score else equal[kind] + [rule] * (right == score)
            if right > score:
                best, score = (rule, counts), right
        if best is None or (kind == "unknown" and score * 10 < max(len(rows), MANY) * 9):
            continue  # rows of several kinds, whose shapes are no parameters
        by_kind[kind] = best[0]
        if not score:
            unsettled.append(kind)
        explained += score
        of += sum(count is not None for count in best[1])
    for kind in by_kind:  # equal rules: the one that other kinds may have as well
        said = {rule.says for other in by_kind if other != kind for rule in equal[other]}
        by_kind[kind] = next((r for r in equal[kind] if r.says in said), by_kind[kind])
    return ColumnConvention(
        convention.heading, convention.meaning, by_kind, convention.factor, convention.batch,
        convention.base, convention.rounding, explained, of, unsettled=tuple(unsettled),
    )  # fmt: skip


def with_or_without_biases(convention: ColumnConvention) -> Iterator[ColumnConvention]:
    """A convention, and the same with biases in the layers of some kinds and without in others."""
    kinds = list(convention.by_kind)
    ways = [_with_biases(convention.meaning, kind, convention.by_kind[kind]) for kind in kinds]
    for chosen in product(*ways):
        yield replace(convention, by_kind=dict(zip(kinds, chosen, strict=True)))


def _with_biases(meaning: Meaning, kind: Kind, rule: Rule) -> list[Rule]:
    """A rule, and the one that differs from it by the biases only."""
    plain_, biased = rule.says.replace(BIASED, "weights", 1), rule.says
    if plain_ == rule.says:
        biased = rule.says.replace("weights", BIASED, 1)
    others = [way for way in rules(meaning, kind) if way.says in (plain_, biased)]
    return [rule, *(way for way in others if way.says != rule.says)]
