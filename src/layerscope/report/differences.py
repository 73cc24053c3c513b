"""Differences of two networks as lines of a table: layers, or whole scopes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from layerscope.graph.types import Shape
from layerscope.report.columns import COLUMNS, cell
from layerscope.report.compare import Change, Kind, LayerMatch, Pair
from layerscope.report.findings import scope_paths
from layerscope.report.numbers import CellValue
from layerscope.report.tree import TableRow
from layerscope.report.types import Layer, Report


class DifferenceLine(Struct, frozen=True):
    """A match of two layers, or a whole scope that only one network has."""

    kind: Kind
    name: str
    type: str
    output: Shape | None
    params: CellValue  # marked where they are bounds or estimates
    macs: CellValue
    is_exact: bool = True
    changes: tuple[Change, ...] = ()
    was: str = ""  # its name in the first network, if it differs
    layers: int = 0  # number of layers in a scope, 0 for a single layer


def listed(pair: Pair, matches: Iterable[LayerMatch]) -> Iterator[DifferenceLine]:
    """One line per layer."""
    for match in matches:
        layer = match.layer
        row = TableRow(layer.name, layer.name, 0, "layer", (layer,))
        was = match.first.name if match.first else layer.name
        yield DifferenceLine(
            match.kind,
            layer.name,
            layer.op,
            layer.output,
            *_figures(row, pair.first if match.second is None else pair.second),
            layer.status == "exact",
            match.changes,
            "" if was == layer.name else was,
        )


def _figures(row: TableRow, report: Report) -> tuple[CellValue, CellValue]:
    """Parameters and multiply-adds as the table of a report has them."""
    return cell(COLUMNS["params"], row, report), cell(COLUMNS["macs"], row, report)


def _scopes(pair: Pair) -> Iterator[DifferenceLine]:
    """One line per scope that only one network has, else one line per layer."""
    whole = {
        kind: _whole_scopes(report, [m for m in pair.matches if m.kind == kind])
        for kind, report in (("only_first", pair.first), ("only_second", pair.second))
    }
    inside: dict[tuple[str, str], list[Layer]] = {}
    for match in pair.matches:
        scope = _outermost(match, whole)
        if scope:
            inside.setdefault((match.kind, scope), []).append(match.layer)
    for match in pair.matches:
        if match.kind == "equal":
            continue
        scope = _outermost(match, whole)
        layers = inside.pop((match.kind, scope), None) if scope else None
        if not scope:
            yield from listed(pair, (match,))
        elif layers:
            report = pair.first if match.kind == "only_first" else pair.second
            yield DifferenceLine(
                match.kind,
                scope,
                report.graph.modules.get(scope, ""),
                layers[-1].output,
                *_figures(TableRow(scope, scope, 0, "scope", tuple(layers)), report),
                all(layer.status == "exact" for layer in layers),
                layers=len(layers),
            )


def folded(pair: Pair) -> Iterator[DifferenceLine]:
    """Differences: one line per scope that only one network has, equal neighbours as × N."""
    run: list[DifferenceLine] = []
    for line in _scopes(pair):
        if run and (not line.layers or replace(line, name=run[0].name) != run[0]):
            yield _joined(run)
            run = []
        run.append(line)
        if not line.layers:
            yield _joined(run)
            run = []
    if run:
        yield _joined(run)


def _joined(run: list[DifferenceLine]) -> DifferenceLine:
    first, times = run[0], len(run)
    if times == 1:
        return (
            replace(first, name=f"{first.name} ({first.layers} layers)") if first.layers else first
        )
    name = f"{first.name}…{run[-1].name.rsplit('.', 1)[-1].rsplit('/', 1)[-1]} × {times}"
    return replace(
        first,
        name=f"{name} ({first.layers * times} layers)",
        params=_multiplied(first.params, times),
        macs=_multiplied(first.macs, times),
    )


def _multiplied(value: CellValue, times: int) -> CellValue:
    """A figure of several copies, with the sign of one."""
    return type(value)(value * times) if isinstance(value, int) else value


def _whole_scopes(report: Report, matches: Sequence[LayerMatch]) -> set[str]:
    """Paths of scopes with more than one layer, all of which are among the matches."""
    inside = Counter(path for layer in report.layers for path in scope_paths(layer))
    found = Counter(path for match in matches for path in scope_paths(match.layer))
    return {path for path, count in found.items() if count == inside[path] > 1}


def _outermost(match: LayerMatch, whole: dict[str, set[str]]) -> str:
    paths = scope_paths(match.layer) if match.kind in whole else ()
    return next((path for path in paths if path in whole[match.kind]), "")
