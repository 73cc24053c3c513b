"""A comparison as text that fits the terminal, as Markdown, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from layerscope.export.grid import Cell, Rows, fits, lay_out, markdown, named
from layerscope.export.text import Style, plain, safe
from layerscope.graph.types import Shape
from layerscope.report.compare import Change, Comparison, Figure, Match, Pair
from layerscope.report.findings import scope_paths
from layerscope.report.numbers import bytes_text, exact_text, ratio_text, short_text
from layerscope.report.types import Layer, Report

MARKS = {"equal": " ", "changed": "~", "only_first": "-", "only_second": "+"}


class Line(Struct, frozen=True):
    """A row of the list of differences: a match, or a whole scope that is only in one network."""

    kind: str
    name: str
    type: str
    output: Shape | None
    params: int
    macs: int
    known: bool = True
    changes: tuple[Change, ...] = ()
    layers: int = 0  # how many a scope holds


def write_text(
    comparison: Comparison,
    *,
    everything: bool = False,
    width: int | None = None,
    style: Style = plain,
) -> str:
    """Totals with ratios to the first, then the differences of each other network to it."""
    blocks = _beside(comparison, width, style)
    for pair in comparison.pairs:
        head = "\n".join(style(line, "head") for line in _broken(_head(pair), width))
        exact, short = (_rows(pair, everything, digits) for digits in (False, True))
        table = _table(exact, short, width, style) if len(exact) > 1 else ""
        blocks.append(f"{head}\n{table}")
    return "\n".join(blocks)


def _table(exact: Rows, short: Rows, width: int | None, style: Style) -> str:
    """The list of differences; only its column of changes may be broken into lines."""
    return lay_out(exact, width, style, short, wrap=exact[0][-1].text == "change")


def write_markdown(comparison: Comparison, *, everything: bool = False) -> str:
    """The same as Markdown tables."""
    others = range(1, len(comparison.reports))
    blocks = [markdown(_totals(comparison, others, False))]
    for pair in comparison.pairs:
        rows = _rows(pair, everything, short=False)
        table = "\n" + markdown(rows) if len(rows) > 1 else ""
        blocks.append(f"{safe(_head(pair))}\n{table}")
    return "\n".join(blocks)


def write_json(comparison: Comparison, *, everything: bool = False, stamp: bool = True) -> str:
    """Figures and every differing layer, with `everything` the equal ones too."""
    import msgspec

    document: dict[str, Any] = {
        "networks": [report.name for report in comparison.reports],
        "totals": {
            figure.name: {
                "values": figure.values,
                "ratios": [None if r is None else float(r) for r in figure.ratios],
            }
            for figure in comparison.figures
        },
        "complete": [not report.coverage.unknown for report in comparison.reports],
        "pairs": [_pair(pair, everything) for pair in comparison.pairs],
        "stamps": [report.stamp for report in comparison.reports] if stamp else None,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _pair(pair: Pair, everything: bool) -> dict[str, Any]:
    return {
        "first": pair.first.name,
        "second": pair.second.name,
        "counts": {
            "equal": pair.count("equal"),
            "changed": pair.count("changed"),
            "only_first": pair.count("only_first"),
            "only_second": pair.count("only_second"),
        },
        "layers": [
            {
                "kind": match.kind,
                "first": _side(match.first),
                "second": _side(match.second),
                "changes": [
                    {"what": c.what, "first": c.first, "second": c.second} for c in match.changes
                ],
            }
            for match in pair.matches
            if everything or match.kind != "equal"
        ],
    }


def _side(layer: Layer | None) -> dict[str, Any] | None:
    if layer is None:
        return None
    known = layer.status != "unknown"
    return {
        "name": layer.name,
        "type": layer.op,
        "output": layer.output,
        "params": layer.params if known else None,
        "macs": layer.ops.mac if known else None,
    }


def _beside(comparison: Comparison, width: int | None, style: Style) -> list[str]:
    """Tables of totals, each with the first network and as many others as fit beside it."""
    waiting = list(range(1, len(comparison.reports)))
    tables = []
    while waiting:
        count = len(waiting)
        while count > 1 and not fits(_totals(comparison, waiting[:count], True), width):
            count -= 1
        shown, waiting = waiting[:count], waiting[count:]
        exact, short = (_totals(comparison, shown, digits) for digits in (False, True))
        tables.append(lay_out(exact, width, style, short))
    return tables


def _totals(comparison: Comparison, others: Sequence[int], short: bool) -> list[list[Cell]]:
    """A row a figure: the first network's value, then of each other the value and the ratio."""
    reports = comparison.reports
    rows = [[named(""), Cell(safe(reports[0].name))]]
    for n in others:
        rows[0] += [Cell(safe(reports[n].name)), Cell("ratio")]
    for figure in comparison.figures:
        row = [named(figure.title), Cell(_least(reports[0]) + _number(figure, 0, short))]
        for n in others:
            row.append(Cell(_least(reports[n]) + _number(figure, n, short)))
            row.append(Cell(_times(figure.ratios[n])))
        rows.append(row)
    return rows


def _number(figure: Figure, n: int, short: bool) -> str:
    value = figure.values[n]
    if figure.unit == "bytes":
        return bytes_text(value)
    return short_text(value) if short else exact_text(value)


def _times(ratio: Fraction | None) -> str:
    if ratio is None:
        return ""
    return f"×{float(ratio):.2g}" if 0 < ratio < Fraction(1, 10) else f"×{ratio_text(ratio)}"


def _broken(text: str, width: int | None) -> list[str]:
    from textwrap import wrap

    return wrap(text, max(width, 20)) if width else [text]


def _least(report: Report) -> str:
    return "≥" if report.coverage.unknown else ""


def _head(pair: Pair) -> str:
    """One line of counts, the networks told apart even where they have one name."""
    first, second = pair.first.name, pair.second.name
    if first == second:
        first, second = "the first", "the second"
    parts = [
        f"{pair.count('equal'):,} layers equal",
        f"{pair.count('changed'):,} changed (~)",
        f"{pair.count('only_first'):,} only in {safe(first)} (-)",
        f"{pair.count('only_second'):,} only in {safe(second)} (+)",
    ]
    return f"{safe(pair.first.name)} → {safe(pair.second.name)}: {', '.join(parts)}"


def _rows(pair: Pair, everything: bool, short: bool) -> list[list[Cell]]:
    number = short_text if short else exact_text
    titles = [named(title) for title in ("", "layer", "type", "output")]
    rows = [[*titles, Cell("params"), Cell("MACs"), named("change")]]
    lines = _lines(pair.matches) if everything else _repeated(_folded(pair))
    for line in lines:
        if line.kind == "equal" and not everything:
            continue
        figures = [number(line.params), number(line.macs)] if line.known else ["?", "?"]
        shape = "?" if line.output is None else "x".join(map(str, line.output))
        rows.append([
            named(MARKS[line.kind]), named(safe(line.name)), named(safe(line.type)), named(shape),
            *map(Cell, figures), named(", ".join(_told(c, number) for c in line.changes)),
        ])  # fmt: skip
    changed = any(row[-1].text for row in rows[1:])
    return rows if changed else [row[:-1] for row in rows]


def _told(change: Change, number: Any) -> str:
    parts = [
        "?" if side is None else number(side) if isinstance(side, int) else safe(side)
        for side in (change.first, change.second)
    ]
    return f"{change.what} {parts[0]} → {parts[1]}"


def _lines(matches: Iterable[Match]) -> Iterator[Line]:
    for match in matches:
        layer = match.layer
        name = layer.name
        if match.first is not None and match.first.name != name:
            name = f"{match.first.name} → {name}"
        yield Line(
            match.kind,
            name,
            layer.op,
            layer.output,
            layer.params,
            layer.ops.mac,
            layer.status != "unknown",
            match.changes,
        )


def _folded(pair: Pair) -> Iterator[Line]:
    """One line for every scope of which nothing is in the other network, else one a layer."""
    whole = {
        kind: _whole_scopes(report, [m for m in pair.matches if m.kind == kind])
        for kind, report in (("only_first", pair.first), ("only_second", pair.second))
    }
    held: dict[tuple[str, str], list[Layer]] = {}
    for match in pair.matches:
        scope = _outermost(match, whole)
        if scope:
            held.setdefault((match.kind, scope), []).append(match.layer)
    for match in pair.matches:
        scope = _outermost(match, whole)
        layers = held.pop((match.kind, scope), None) if scope else None
        if not scope:
            yield from _lines((match,))
        elif layers:
            report = pair.first if match.kind == "only_first" else pair.second
            yield Line(
                match.kind,
                scope,
                report.graph.modules.get(scope, ""),
                layers[-1].output,
                sum(layer.params for layer in layers),
                sum(layer.ops.mac for layer in layers),
                all(layer.status != "unknown" for layer in layers),
                layers=len(layers),
            )


def _repeated(lines: Iterable[Line]) -> Iterator[Line]:
    """Neighbouring scopes that cost the same in one line."""
    run: list[Line] = []
    for line in lines:
        if run and (not line.layers or replace(line, name=run[0].name) != run[0]):
            yield _joined(run)
            run = []
        run.append(line)
        if not line.layers:
            yield _joined(run)
            run = []
    if run:
        yield _joined(run)


def _joined(run: list[Line]) -> Line:
    first, times = run[0], len(run)
    if times == 1:
        return (
            replace(first, name=f"{first.name} ({first.layers} layers)") if first.layers else first
        )
    name = f"{first.name}…{run[-1].name.rsplit('.', 1)[-1].rsplit('/', 1)[-1]} × {times}"
    return replace(
        first,
        name=f"{name} ({first.layers * times} layers)",
        params=first.params * times,
        macs=first.macs * times,
    )


def _whole_scopes(report: Report, matches: Sequence[Match]) -> set[str]:
    """Paths of scopes with more than one layer, all of which are among the matches."""
    inside = Counter(path for layer in report.layers for path in scope_paths(layer))
    found = Counter(path for match in matches for path in scope_paths(match.layer))
    return {path for path, count in found.items() if count == inside[path] > 1}


def _outermost(match: Match, whole: dict[str, set[str]]) -> str:
    paths = scope_paths(match.layer) if match.kind in whole else ()
    return next((path for path in paths if path in whole[match.kind]), "")
