"""A comparison of networks (`compare`): a row per network, then the layers that differ."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

from layerscope.errors import UnknownName, UsageError
from layerscope.escaping import visible
from layerscope.export.comparison_json import write_json
from layerscope.export.grid import Blocks, Cell, Grid, Lines, named
from layerscope.graph.names import shape_text
from layerscope.report.columns import field_area, field_text
from layerscope.report.compare import Change, ComparedTotal, Comparison, Kind, Pair
from layerscope.report.differences import DifferenceLine, folded, listed
from layerscope.report.numbers import (
    ABOUT,
    CellValue,
    at_least,
    bytes_text,
    cell_text,
    exact_text,
    marked,
    ratio_text,
    short_text,
    time_text,
)
from layerscope.report.types import Report

__all__ = ["blocks", "headline", "write_json"]  # what `printing` calls

MARKS: dict[Kind, str] = {"equal": " ", "changed": "~", "only_first": "-", "only_second": "+"}
# Column -> name of the total that it shows.
TOTALS = {
    "params": "params", "macs": "macs", "flops": "flops", "counted": "convention_ops",
    "activations": "activations", "memory": "activation_bytes", "peak": "peak_activation_bytes",
    "weights": "param_bytes",
}  # fmt: skip
COLUMNS = ("name", *TOTALS, "field", "time")
# In a narrow terminal the last of these are left out first.
KEPT = ("counted", "params", "macs", "time", "peak", "weights", "activations", "memory", "flops")


class Shown(Struct, frozen=True):
    """One column of a network's row: its text, exact and short, and its value."""

    text: str
    short: str
    value: int | float | str | None
    ratio: Fraction | float | None = None  # to the first network
    is_bound: bool = False  # the ratio is unknown, as one of its figures is a lower bound
    sort_key: tuple[float | Fraction, ...] = ()  # (): unknown
    ratio_sign: str = ""  # `~` if one of the two is an estimate


def headline(comparison: Comparison) -> str:
    """The networks in one line."""
    return "of " + ", ".join(visible(report.name) for report in comparison.reports)


def blocks(
    comparison: Comparison,
    *,
    columns: Sequence[str] = (),
    sort: str = "",
    layers: bool | None = None,
    everything: bool = False,
    stamp: bool = True,
) -> Blocks:
    """A row per network with ratios to the first, the layers that differ, and stamps.

    Layers are shown for two networks, or with `layers`; `everything` lists equal ones too.
    """
    found: list[Grid | Lines] = [_networks(comparison, columns, sort)]
    if len(comparison.pairs) == 1 if layers is None else layers:
        for n, pair in enumerate(comparison.pairs, 1):
            found.append(_differences(pair, everything))
            timed = _times_of_layers(comparison, pair, n)
            found += [timed] if timed is not None else []
    return [*found, Lines(_stamps(comparison))] if stamp else found


# A row per network


def _networks(comparison: Comparison, columns: Sequence[str], sort: str) -> Grid:
    """A row per network, with its ratio to the first beside every figure."""
    figures = {figure.name: figure for figure in comparison.figures}
    names = [name for name in _chosen(comparison, columns, figures) if name != "name"]
    by = [sort] if sort and sort != "name" else []
    for name in by:
        _check_column(comparison, name, figures)
    cells = {name: _column(comparison, name, figures) for name in {*names, *by}}
    order = list(range(len(comparison.reports)))
    if sort == "name":
        order.sort(key=lambda n: comparison.reports[n].name)
    elif sort:
        order.sort(key=lambda n: _largest_first(cells[sort][n]))
    titles = _titles(figures)
    head, keys = [named("network")], ["network"]
    for name in names:
        rank = 2 * KEPT.index(name) if name in KEPT[3:] else 0
        head.append(Cell(titles[name], drop=rank))
        keys.append(name)
        if _has_ratios(name):
            head.append(Cell("ratio", drop=rank + 1))
            keys.append(f"{name}_ratio")
    rows = [head]
    for n in order:
        row = [named(visible(comparison.reports[n].name))]
        for name in names:
            shown = cells[name][n]
            row.append(Cell(shown.text, short=shown.short, value=shown.value))
            if _has_ratios(name):
                row.append(_ratio_cell(shown, n))
        rows.append(row)
    return Grid(rows, names=keys)


def total_texts(comparison: Comparison, n: int) -> list[tuple[str, str, str, str, str]]:
    """Totals of the first network and of another: name, title, both texts, and their ratio."""
    figures = {figure.name: figure for figure in comparison.figures}
    titles = _titles(figures)
    found = []
    for name in _chosen(comparison, (), figures):
        cells = _column(comparison, name, figures)
        ratio = _ratio_cell(cells[n], n).text
        found.append((name, titles[name], cells[0].text, cells[n].text, ratio))
    return found


def _chosen(
    comparison: Comparison, columns: Sequence[str], figures: dict[str, ComparedTotal]
) -> Sequence[str]:
    """The columns to print; by default all totals, and the time if there is one."""
    if not columns:
        default = [name for name, total in TOTALS.items() if total in figures]
        return [*default, *(["time"] if any(comparison.times) else [])]
    for name in columns:
        _check_column(comparison, name, figures)
    return list(dict.fromkeys(columns))


def _check_column(comparison: Comparison, name: str, figures: dict[str, ComparedTotal]) -> None:
    """Raise for a column to print or to sort by that this comparison does not have."""
    if name not in COLUMNS:
        raise UnknownName("column", name, COLUMNS, f"; choose from {', '.join(COLUMNS)}")
    if name == "time" and not any(comparison.times):
        raise UsageError("the column time needs --measure, --on MACHINE or measured runs")
    if name == "counted" and "convention_ops" not in figures:
        convention = comparison.reports[0].convention.name
        if convention == "exact":
            raise UsageError("the column counted needs --like CONVENTION")
        raise UsageError(f"the column counted: the convention {convention} counts no operations")


def _largest_first(shown: Shown) -> tuple[bool, tuple[float | Fraction, ...]]:
    """The key of a row; a lower bound before an equal value, unknown values last."""
    return not shown.sort_key, tuple(-part for part in shown.sort_key)


def _has_ratios(name: str) -> bool:
    return name != "field"


def _titles(figures: dict[str, ComparedTotal]) -> dict[str, str]:
    titles = {name: figures[total].title for name, total in TOTALS.items() if total in figures}
    return {**titles, "field": "field", "time": "time"}


def _column(comparison: Comparison, name: str, figures: dict[str, ComparedTotal]) -> list[Shown]:
    """The cells of one column, by network."""
    if name == "field":
        return [_field(report) for report in comparison.reports]
    if name == "time":
        return _times(comparison)
    figure = figures[TOTALS[name]]
    found = []
    for n, value in enumerate(figure.values):
        bound = figure.bounds[n]
        if figure.unit == "bytes":
            texts = (bytes_text(value),) * 2
        else:
            texts = (exact_text(value), short_text(value))
        sign = figure.sign(n)
        exact, short = (marked(text, sign) for text in texts)
        stored: int | str = marked(str(value), sign) if sign else value
        doubtful = bound or figure.bounds[0]
        about = ABOUT if ABOUT in sign + figure.sign(0) else ""
        key = (value, bound)
        found.append(Shown(exact, short, stored, figure.ratios[n], doubtful, key, about))
    return found


def _field(report: Report) -> Shown:
    fields = [layer.field for layer in report.layers if layer.field is not None]
    text = field_text(fields[-1]) if fields else "?"
    return Shown(text, text, None, sort_key=field_area(fields[-1]) if fields else ())


def _times(comparison: Comparison) -> list[Shown]:
    first = comparison.times[0]
    found = []
    for time in comparison.times:
        if time is None:
            found.append(Shown("?", "?", None, None, True))
            continue
        text = at_least(time_text(time.total_s), time.is_lower_bound)
        doubtful = first is None or first.is_lower_bound or time.is_lower_bound
        ratio = None if doubtful or first is None else time.total_s / first.total_s
        value: float | str = f"≥{time.total_s}" if time.is_lower_bound else time.total_s
        key = (time.total_s, time.is_lower_bound)
        found.append(Shown(text, text, value, ratio, doubtful, key))
    return found


def _ratio_cell(shown: Shown, n: int) -> Cell:
    if n == 0:
        return Cell("", value="")
    if shown.ratio is None:
        text = "?" if shown.is_bound else ""
        return Cell(text, value=text)
    text, value = factor_text(shown.ratio), float(shown.ratio)
    if not shown.ratio_sign:
        return Cell(text, value=value)
    return Cell(shown.ratio_sign + text, value=f"{shown.ratio_sign}{value}")


def factor_text(ratio: Fraction | float) -> str:
    """A ratio, with the sign of a product."""
    return f"×{float(ratio):.2g}" if 0 < ratio < 0.1 else f"×{ratio_text(Fraction(ratio))}"


# Layers


def _differences(pair: Pair, everything: bool) -> Grid | Lines:
    """The layers of two networks that differ, with what changed under each."""
    lines = list(listed(pair, pair.matches) if everything else folded(pair))
    if not lines:
        return Lines([head(pair)], "head")
    below = ["", *(_changes(line) for line in lines)]
    names = ("change", "layer", "type", "output", "params", "macs")
    return Grid(_rows(lines), below, head(pair), names, folds=len(lines) > 20, in_csv=False)


def head(pair: Pair) -> str:
    """One line that counts equal, changed, removed and added layers."""
    first, second = pair.first.name, pair.second.name
    if first == second:
        first, second = "the first", "the second"
    parts = [
        f"{pair.count('equal'):,} layers equal",
        f"{pair.count('changed'):,} changed (~)",
        f"{pair.count('only_first'):,} only in {visible(first)} (-)",
        f"{pair.count('only_second'):,} only in {visible(second)} (+)",
    ]
    return f"{visible(pair.first.name)} → {visible(pair.second.name)}: {', '.join(parts)}"


def _rows(lines: Sequence[DifferenceLine]) -> list[list[Cell]]:
    head = [named(""), named("layer"), named("type", 2), named("output", 1)]
    rows = [[*head, Cell("params"), Cell("MACs")]]
    for line in lines:
        figures = [_figure(value) for value in (line.params, line.macs)]
        words = [MARKS[line.kind], visible(line.name), visible(line.type), shape_text(line.output)]
        rows.append([*map(named, words), *figures])
    return rows


def _figure(value: CellValue) -> Cell:
    exact, short = (cell_text(value, "count", short=each) for each in (False, True))
    return Cell(exact, short=short, value=value if type(value) is int else str(value))


def _times_of_layers(comparison: Comparison, pair: Pair, n: int) -> Grid | None:
    """The times of matched layers in two runs, and by which factor each changed."""
    if not comparison.times:
        return None
    first, second = comparison.times[0], comparison.times[n]
    if first is None or second is None or not first.layers or not second.layers:
        return None
    head = [named("layer"), Cell(pair.first.name), Cell(pair.second.name), Cell("ratio")]
    rows = [head]
    for match in pair.matches:
        sides = ((match.first, first), (match.second, second))
        both = [None if layer is None else time.layers.get(layer.name) for layer, time in sides]
        if any(both):
            rows.append([named(visible(match.layer.name)), *_pair_of_times(*both)])
    totals = [time.total_s for time in (first, second)]
    whole = _pair_of_times(*totals)
    bounds = [time.is_lower_bound for time in (first, second)]
    if any(bounds):
        whole = [_bounded(cell, bound) for cell, bound in zip(whole, bounds, strict=False)]
        whole.append(Cell("?", value="?"))
    rows.append([named("end to end"), *whole])
    title = f"time per layer: {first.source}; {second.source}"
    names = ("layer", "first_s", "second_s", "ratio")
    return Grid(rows, (), title, names, folds=len(rows) > 20, totals=1, in_csv=False)


def _pair_of_times(before: float | None, after: float | None) -> list[Cell]:
    """Two times and their ratio; blank where a layer runs as part of another one."""
    cells = [Cell("" if t is None else time_text(t), value=t) for t in (before, after)]
    ratio = after / before if before and after else None
    return [*cells, Cell("" if ratio is None else factor_text(ratio), value=ratio)]


def _bounded(cell: Cell, bound: bool) -> Cell:
    """A cell with the sign of a lower bound if it is one."""
    return Cell(at_least(cell.text, bound), value=f"≥{cell.value}") if bound else cell


def change_text(change: Change) -> str:
    """What changed, from and to."""
    parts = [
        "?" if side is None else visible(cell_text(side, "count"))
        for side in (change.first, change.second)
    ]
    return f"{change.what} {parts[0]} → {parts[1]}"


def _changes(line: DifferenceLine) -> str:
    was = [f"was {visible(line.was)}"] if line.was else []
    return ", ".join([*was, *(change_text(change) for change in line.changes)])


def _stamps(comparison: Comparison) -> list[str]:
    """The stamp of each network, its coverage if it has unknown operators, and its time."""
    lines = []
    for n, report in enumerate(comparison.reports):
        lines.append(report.stamp)
        if report.coverage.unknown or report.coverage.estimated:
            lines.append(str(report.coverage))
        if report.unused_params:
            lines.append(f"unused parameters of {report.name}: {report.unused_params:,}")
        time = comparison.times[n] if comparison.times else None
        if time is not None:
            lines.append(f"time of {report.name}: {time.source}")
    return lines
