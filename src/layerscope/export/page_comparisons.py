"""Two networks of a report page against each other: what `compare` prints, by number of layer."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from layerscope.export.comparison import MARKS, change_text, factor_text, head, total_texts
from layerscope.export.page_types import PageComparison, PageMatch, PageTotal
from layerscope.report.columns import COLUMNS, cell
from layerscope.report.compare import Comparison, LayerMatch, NetworkTime, Pair
from layerscope.report.tree import TableRow
from layerscope.report.types import Layer, Report

Times = tuple[NetworkTime | None, NetworkTime | None]
# columns of layers that have a ratio
COMPARED = ("params", "macs", "flops", "activations", "memory", "read", "write", "weights")


def comparisons(compared: Comparison, reports: Sequence[int]) -> list[PageComparison]:
    """The first network against each of the others; `reports` are their numbers on the page."""
    found = []
    for n, pair in enumerate(compared.pairs, 1):
        numbers = [
            {layer.name: k for k, layer in enumerate(report.layers)}
            for report in (pair.first, pair.second)
        ]
        times = (compared.times[0], compared.times[n]) if compared.times else (None, None)
        found.append(
            PageComparison(
                reports[0],
                reports[n],
                head(pair),
                {kind: pair.count(kind) for kind in MARKS},
                [PageTotal(*texts) for texts in total_texts(compared, n)],
                [_match(match, pair, numbers, times) for match in pair.matches],
            )
        )
    return found


def _match(match: LayerMatch, pair: Pair, numbers: list[dict[str, int]], times: Times) -> PageMatch:
    first, second = match.first, match.second
    ratios: dict[str, str] = {}
    if first is not None and second is not None:
        ratios = {**_ratios(first, second, pair), **_time_ratio(first, second, times)}
    return PageMatch(
        MARKS[match.kind].strip() or "=",
        None if first is None else numbers[0][first.name],
        None if second is None else numbers[1][second.name],
        [change_text(change) for change in match.changes],
        ratios,
    )


def _ratios(first: Layer, second: Layer, pair: Pair) -> dict[str, str]:
    """Figures of the second layer divided by those of the first, where they differ."""
    found = {}
    for name in COMPARED:
        was, now = _figure(name, first, pair.first), _figure(name, second, pair.second)
        if was != now:
            found[name] = factor_text(Fraction(now, was)) if was and now is not None else "?"
    return found


def _time_ratio(first: Layer, second: Layer, times: Times) -> dict[str, str]:
    """The time of the second layer divided by that of the first, if both have one."""
    both = [
        None if time is None else time.layers.get(layer.name)
        for layer, time in zip((first, second), times, strict=True)
    ]
    was, now = both
    return {"time": factor_text(now / was)} if was and now else {}


def _figure(name: str, layer: Layer, report: Report) -> int | None:
    """An exact figure of a layer; None if it is not."""
    value = cell(COLUMNS[name], TableRow(layer.name, layer.name, 0, "layer", (layer,)), report)
    return value if type(value) is int else None
