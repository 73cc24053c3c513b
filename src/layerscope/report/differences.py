"""The differences of two networks as lines people read: layers, or whole scopes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from layerscope.graph.types import Shape
from layerscope.report.compare import Change, Kind, Match, Pair
from layerscope.report.findings import scope_paths
from layerscope.report.types import Layer, Report


class Line(Struct, frozen=True):
    """A row of the list of differences: a match, or a whole scope that is only in one network."""

    kind: Kind
    name: str
    type: str
    output: Shape | None
    params: int
    macs: int
    known: bool = True
    changes: tuple[Change, ...] = ()
    was: str = ""  # its name in the first network, if that is another
    layers: int = 0  # how many a scope holds


def listed(matches: Iterable[Match]) -> Iterator[Line]:
    """A line a layer."""
    for match in matches:
        layer = match.layer
        was = match.first.name if match.first else layer.name
        yield Line(
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


def _scopes(pair: Pair) -> Iterator[Line]:
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
        if match.kind == "equal":
            continue
        scope = _outermost(match, whole)
        layers = held.pop((match.kind, scope), None) if scope else None
        if not scope:
            yield from listed((match,))
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


def folded(pair: Pair) -> Iterator[Line]:
    """What differs: scopes that are wholly in one network as one line, alike neighbours as × N."""
    run: list[Line] = []
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
