"""A comparison of networks as text, Markdown and JSON (`compare`)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from layerscope.escaping import json_text, visible
from layerscope.escaping import markdown as escape
from layerscope.export.grid import Cell, fits, lay_out, markdown, named
from layerscope.export.text import Style, plain
from layerscope.graph.names import shape_text
from layerscope.report.compare import Change, ComparedTotal, Comparison, Pair
from layerscope.report.differences import DifferenceLine, folded, listed
from layerscope.report.numbers import at_least, bytes_text, exact_text, ratio_text, short_text
from layerscope.report.types import Layer

MARKS = {"equal": " ", "changed": "~", "only_first": "-", "only_second": "+"}


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
        lines = _lines(pair, everything)
        exact, short = (_rows(lines, digits) for digits in (False, True))
        below = ["", *(_changes(line) for line in lines)]
        table = lay_out(exact, width, style, short, below) if lines else ""
        blocks.append(f"{head}\n{table}")
    return "\n".join(blocks)


def write_markdown(comparison: Comparison, *, everything: bool = False) -> str:
    """The same as Markdown tables."""
    others = range(1, len(comparison.reports))
    blocks = [markdown(_totals(comparison, others, False))]
    for pair in comparison.pairs:
        lines = _lines(pair, everything)
        changes = [named("change"), *(named(_changes(line)) for line in lines)]
        rows = [[*row, last] for row, last in zip(_rows(lines, False), changes, strict=True)]
        table = "\n" + markdown(rows) if lines else ""
        blocks.append(f"{escape(_head(pair))}\n{table}")
    return "\n".join(blocks)


def write_json(comparison: Comparison, *, everything: bool = False, stamp: bool = True) -> str:
    """Figures and every differing layer, with `everything` the equal ones too."""
    document: dict[str, object] = {
        "networks": [report.name for report in comparison.reports],
        "totals": {
            figure.name: {
                "values": figure.values,
                "ratios": [None if r is None else float(r) for r in figure.ratios],
            }
            for figure in comparison.figures
        },
        "complete": [not report.coverage.unknown for report in comparison.reports],
        "lower_bounds": [list(report.lower_bounds) for report in comparison.reports],
        "coverage": [str(report.coverage) for report in comparison.reports],
        "notes": [list(report.notes) for report in comparison.reports],
        "pairs": [_pair(pair, everything) for pair in comparison.pairs],
        "stamps": [report.stamp for report in comparison.reports] if stamp else None,
    }
    return json_text(document)


def _pair(pair: Pair, everything: bool) -> dict[str, object]:
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


def _side(layer: Layer | None) -> dict[str, object] | None:
    if layer is None:
        return None
    has_ops = layer.status != "unknown"
    return {
        "name": layer.name,
        "type": layer.op,
        "output": layer.output,
        "params": layer.params if has_ops or layer.node.params is not None else None,
        "macs": layer.ops.mac if has_ops else None,
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
    """One row per figure: value of the first network, then value and ratio of each other one."""
    reports = comparison.reports
    rows = [[named(""), Cell(visible(reports[0].name))]]
    for n in others:
        rows[0] += [Cell(visible(reports[n].name)), Cell("ratio")]
    for figure in comparison.figures:
        row = [named(figure.title), Cell(_number(figure, 0, short))]
        for n in others:
            row.append(Cell(_number(figure, n, short)))
            bound = figure.bounds[0] or figure.bounds[n]
            row.append(Cell("?" if bound else _times(figure.ratios[n])))
        rows.append(row)
    return rows


def _number(figure: ComparedTotal, n: int, short: bool) -> str:
    value = figure.values[n]
    if figure.unit == "bytes":
        text = bytes_text(value)
    else:
        text = short_text(value) if short else exact_text(value)
    return at_least(text, figure.bounds[n])


def _times(ratio: Fraction | None) -> str:
    if ratio is None:
        return ""
    return f"×{float(ratio):.2g}" if 0 < ratio < Fraction(1, 10) else f"×{ratio_text(ratio)}"


def _broken(text: str, width: int | None) -> list[str]:
    from textwrap import wrap

    return wrap(text, max(width, 20)) if width else [text]


def _head(pair: Pair) -> str:
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


def _lines(pair: Pair, everything: bool) -> list[DifferenceLine]:
    return list(listed(pair.matches) if everything else folded(pair))


def _rows(lines: Sequence[DifferenceLine], short: bool) -> list[list[Cell]]:
    number = short_text if short else exact_text
    titles = [named(title) for title in ("", "layer", "type", "output")]
    rows = [[*titles, Cell("params"), Cell("MACs")]]
    for line in lines:
        figures = [number(line.params), number(line.macs)] if line.has_figures else ["?", "?"]
        words = [MARKS[line.kind], visible(line.name), visible(line.type), shape_text(line.output)]
        rows.append([*map(named, words), *map(Cell, figures)])
    return rows


def _change_text(change: Change) -> str:
    parts = [
        "?" if side is None else exact_text(side) if isinstance(side, int) else visible(side)
        for side in (change.first, change.second)
    ]
    return f"{change.what} {parts[0]} → {parts[1]}"


def _changes(line: DifferenceLine) -> str:
    was = [f"was {visible(line.was)}"] if line.was else []
    return ", ".join([*was, *(_change_text(change) for change in line.changes)])
