"""Runs of a measurement side by side: the times of each layer, and the time saved by fusion."""

from __future__ import annotations

from layerscope.export.grid import Cell, Grid, Lines, named
from layerscope.export.run_lines import AT_LEAST, UNKNOWN
from layerscope.report.measurement import Measurement, Run, total_s
from layerscope.report.numbers import time_text
from layerscope.report.types import Report


def side_by_side(measurement: Measurement, report: Report) -> list[Grid | Lines]:
    """Layers of all runs side by side, the fastest marked with *; time saved by fusion."""
    runs = measurement.runs
    titles = [f"{run.engine}{' unfused' if run.fusion == 'off' else ''}" for run in runs]
    keyed = [_by_layer(run) for run in runs]
    table = [[named("layer"), *(Cell(title) for title in titles)]]
    joined = _common(keyed, [node.name for node in report.graph.nodes])
    untimed = [_without_a_time(run) for run in runs]
    for members in joined:
        times = [sum(set_time(each, members)) for each in keyed]
        bounds = [not missing.isdisjoint(members) for missing in untimed]
        least = _fastest(times, bounds)
        name = " + ".join(members[:2]) + (f" + {len(members) - 2} more" if len(members) > 2 else "")
        cells = [_cell(t, least, bound) for t, bound in zip(times, bounds, strict=True)]
        table.append([named(name), *cells])
    whole = [run.timing.end_to_end_s for run in runs]
    best = _fastest([t or 0.0 for t in whole], [t is None for t in whole])
    ends = [Cell(time_text(t) + ("*" if t is not None and t == best else " ")) for t in whole]
    table.append([named("end to end"), *ends])
    lines = [fusing(runs, report)] if {run.fusion for run in runs} == {"on", "off"} else []
    return [Grid(table, totals=1, in_csv=False), Lines([line for line in lines if line])]


def _fastest(times: list[float], bounds: list[bool]) -> float | None:
    """The shortest time; None if a lower bound is below it, or if no time is known."""
    pairs = list(zip(times, bounds, strict=True))
    least = min((t for t, bound in pairs if t > 0 and not bound), default=None)
    if least is None or any(bound and t < least for t, bound in pairs):
        return None
    return least


def _cell(seconds: float, least: float | None, bound: bool) -> Cell:
    """The time of a group of layers; `bound`: some of them have no time."""
    if bound:
        return Cell(f"{AT_LEAST}{time_text(seconds)} " if seconds else f"{UNKNOWN} ")
    return Cell(time_text(seconds) + ("*" if seconds == least else " ") if seconds else "")


def _without_a_time(run: Run) -> set[str]:
    return {name for row in run.rows if row.time_s is None for name in row.layers}


def fusing(runs: tuple[Run, ...], report: Report) -> str:
    """Time saved by all optimisations, and by fusing layers into others."""
    on = next(run for run in runs if run.fusion == "on")
    off = next((r for r in runs if r.fusion == "off" and r.engine == on.engine), None)
    if off is None:
        return ""
    fused, unfused = on.timing.end_to_end_s, off.timing.end_to_end_s
    if fused is None or unfused is None:
        return ""
    with_others = {n for row in on.rows if len(row.layers) > 1 for n in row.layers[1:]}
    alone = total_s(
        row
        for row in off.rows
        if row.kind == "layer" and all(layer in with_others for layer in row.layers)
    )
    saved = unfused - fused
    return (
        f"All optimisations save {time_text(saved)} of {time_text(unfused)} "
        f"({saved / unfused:.0%}); the layers that are fused into others take "
        f"{time_text(alone)} on their own ({alone / unfused:.0%})."
    )


def _by_layer(run: Run) -> dict[tuple[str, ...], float]:
    return {
        row.layers: row.time_s for row in run.rows if row.kind == "layer" and row.time_s is not None
    }


def set_time(rows: dict[tuple[str, ...], float], members: tuple[str, ...]) -> list[float]:
    """Times of the rows whose layers are all among `members`."""
    wanted = set(members)
    return [time for layers, time in rows.items() if set(layers) <= wanted]


def _common(keyed: list[dict[tuple[str, ...], float]], order: list[str]) -> list[tuple[str, ...]]:
    """The smallest groups of layers that are a union of whole rows in every run."""
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    for rows in keyed:
        for layers in rows:
            for layer in layers[1:]:
                root[find(layer)] = find(layers[0])
    timed_layers = {layer for rows in keyed for layers in rows for layer in layers}
    groups: dict[str, list[str]] = {}
    for name in order:
        if name in timed_layers:
            groups.setdefault(find(name), []).append(name)
    return [tuple(group) for group in groups.values()]
