"""Differences of two networks as lines of a table: layers, or whole scopes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from layerscope.graph.types import Shape
from layerscope.report.compare import Change, Kind, LayerMatch, Pair
from layerscope.report.findings import scope_paths
from layerscope.report.types import Layer, Report


class DifferenceLine(Struct, frozen=True):
    """A match of two layers, or a whole scope that only one network has."""

    kind: Kind
    name: str
    type: str
    output: Shape | None
    params: int
    macs: int
    has_figures: bool = True
    changes: tuple[Change, ...] = ()
    was: str = ""  # its name in the first network, if it differs
    layers: int = 0  # number of layers in a scope, 0 for a single layer


def listed(matches: Iterable[LayerMatch]) -> Iterator[DifferenceLine]:
    """One line per layer."""
    for match in matches:
        layer = match.layer
        was = match.first.name if match.first else layer.name
        yield DifferenceLine(
            match.kind,
            layer.name,
            layer.op,
            layer.output,
            layer.params,
            layer.ops.mac,
            layer.status != "unknown",
            match.changes,
            "" if was == layer.name else was,
        )


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
            yield from listed((match,))
        elif layers:
            report = pair.first if match.kind == "only_first" else pair.second
            yield DifferenceLine(
                match.kind,
                scope,
                report.graph.modules.get(scope, ""),
                layers[-1].output,
                sum(layer.params for layer in layers),
                sum(layer.ops.mac for layer in layers),
                all(layer.status != "unknown" for layer in layers),
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
        params=first.params * times,
        macs=first.macs * times,
    )


def _whole_scopes(report: Report, matches: Sequence[LayerMatch]) -> set[str]:
    """Paths of scopes with more than one layer, all of which are among the matches."""
    inside = Counter(path for layer in report.layers for path in scope_paths(layer))
    found = Counter(path for match in matches for path in scope_paths(match.layer))
    return {path for path, count in found.items() if count == inside[path] > 1}


def _outermost(match: LayerMatch, whole: dict[str, set[str]]) -> str:
    paths = scope_paths(match.layer) if match.kind in whole else ()
    return next((path for path in paths if path in whole[match.kind]), "")
