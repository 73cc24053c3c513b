"""Two networks of a report page against each other: what `compare` prints, by number of layer."""

from __future__ import annotations

from fractions import Fraction

from layerscope.export.comparison import MARKS, change_text, factor_text, head, total_texts
from layerscope.export.page_types import PageComparison, PageMatch, PageTotal
from layerscope.report.columns import COLUMNS, cell
from layerscope.report.compare import Comparison, LayerMatch, Pair
from layerscope.report.tree import TableRow
from layerscope.report.types import Layer, Report

# columns of layers that have a ratio
COMPARED = ("params", "macs", "flops", "activations", "memory", "read", "write", "weights")


def comparisons(compared: Comparison) -> list[PageComparison]:
    """The first network against each of the others."""
    found = []
    for n, pair in enumerate(compared.pairs, 1):
        numbers = [
            {layer.name: k for k, layer in enumerate(report.layers)}
            for report in (pair.first, pair.second)
        ]
        found.append(
            PageComparison(
                0,
                n,
                head(pair),
                {kind: pair.count(kind) for kind in MARKS},
                [PageTotal(*texts) for texts in total_texts(compared, n)],
                [_match(match, pair, numbers) for match in pair.matches],
            )
        )
    return found


def _match(match: LayerMatch, pair: Pair, numbers: list[dict[str, int]]) -> PageMatch:
    first, second = match.first, match.second
    return PageMatch(
        MARKS[match.kind].strip() or "=",
        None if first is None else numbers[0][first.name],
        None if second is None else numbers[1][second.name],
        [change_text(change) for change in match.changes],
        _ratios(first, second, pair) if first is not None and second is not None else {},
    )


def _ratios(first: Layer, second: Layer, pair: Pair) -> dict[str, str]:
    """Figures of the second layer divided by those of the first, where they differ."""
    found = {}
    for name in COMPARED:
        was, now = _figure(name, first, pair.first), _figure(name, second, pair.second)
        if was != now:
            found[name] = factor_text(Fraction(now, was)) if was and now is not None else "?"
    return found


def _figure(name: str, layer: Layer, report: Report) -> int | None:
    """An exact figure of a layer; None if it is not."""
    value = cell(COLUMNS[name], TableRow(layer.name, layer.name, 0, "layer", (layer,)), report)
    return value if type(value) is int else None
