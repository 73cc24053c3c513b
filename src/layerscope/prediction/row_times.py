"""Times of rows on this machine: the minimum over repeats that are far apart in time.

A shared or virtual processor is slower for seconds at a time. The minimum over many repeats is the
most reproducible figure: between two halves of the repeats it differs a third as much as the
median, even if the median is scaled by the time of a matrix product measured around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from layerscope.engines import engine
from layerscope.engines.workload import MeasureOptions, prepare_workload
from layerscope.interrupts import scratch_folder
from layerscope.prediction.engine_rules import EngineRules
from layerscope.prediction.fusion import fused_rows
from layerscope.prediction.layout import layouts_of
from layerscope.prediction.row_features import RowWork, reorder_of, work_of
from layerscope.report import Report
from layerscope.report.measurement import Run

RUNS = 6
RowTimes = dict[tuple[str, ...], float]  # seconds of a row by its layers


def run_once(report: Report, name: str, threads: int) -> Run:
    """Run a network a few times on an engine."""
    with scratch_folder() as folder:
        workload = prepare_workload(report, folder)
        options = MeasureOptions(threads, RUNS, memory=False, paired=False)
        run, _ = engine(name).measure(workload, options)
    if run.code == 130:  # an interrupted run is no sample
        raise KeyboardInterrupt
    return run


def layers_and_reorders(runs: Sequence[Run]) -> tuple[RowTimes, RowTimes]:
    """Seconds of rows, and of layout changes by the layer that they belong to."""
    found: dict[str, RowTimes] = {"layer": {}, "layout": {}}
    for run in runs:
        times: dict[tuple[str, tuple[str, ...]], list[float]] = {}
        for row in run.rows:
            if row.layers and row.kind in found:
                key = (row.kind, row.layers if row.kind == "layer" else row.layers[:1])
                before = times.get(key, [0.0] * len(row.runs_s))
                times[key] = [a + b for a, b in zip(before, row.runs_s, strict=True)]
        for (kind, names), seconds in times.items():
            least = min(seconds)
            found[kind][names] = min(found[kind].get(names, least), least)
    return found["layer"], found["layout"]


def row_times(runs: Sequence[Run]) -> RowTimes:
    """Seconds of every row, layout changes included."""
    layers, reorders = layers_and_reorders(runs)
    spare = {key[0]: seconds for key, seconds in reorders.items()}
    return {
        key: seconds + sum(spare.pop(name, 0.0) for name in key) for key, seconds in layers.items()
    }


def end_to_end(runs: Sequence[Run]) -> float:
    """Seconds of the fastest run."""
    return min(min(run.timing.runs_s) for run in runs)


def around(runs: Sequence[Run]) -> float:
    """Seconds of a run that are in no row."""
    return max(min(min(run.rows[-1].runs_s) for run in runs), 0.0)


def together(networks: Sequence[Sequence[Run]]) -> float:
    """Fastest run over the sum of the fastest rows, whose minima come from different runs."""
    ratios = [
        (end_to_end(runs) - around(runs)) / whole
        for runs in networks
        if (whole := sum(row_times(runs).values())) > 0
    ]
    return max(median(ratios), 1.0) if ratios else 1.0


def readers_of(report: Report) -> dict[str, list[str]]:
    """Nodes that read each tensor."""
    found: dict[str, list[str]] = {}
    for node in report.graph.nodes:
        for name in node.inputs:
            found.setdefault(name, []).append(node.name)
    return found


def works_of(
    report: Report, runs: Sequence[Run], rules: EngineRules
) -> list[tuple[RowWork, float]]:
    """The work and seconds of every row, and of every layout change that the rules predict."""
    readers = readers_of(report)
    layouts = layouts_of(report, fused_rows(report, rules), rules)
    found: list[tuple[RowWork, float]] = []
    times, reorders = layers_and_reorders(runs)
    for key, seconds in times.items():
        layers = [report.by_name[n] for n in key if n in report.by_name]
        if layers and seconds > 0:
            found.append((work_of(layers, report, readers, layouts), seconds))
        moved = [size for name in key for size in layouts.reordered.get(name, ())]
        spent = sum(reorders.get((name,), 0.0) for name in key)
        if moved and spent > 0:
            found.append((reorder_of(moved, key[-1] in layouts.blocked), spent))
    return found
