"""What rows of a network take here: the least of repeats that lie far apart.

A processor that others use too, or that a hypervisor shares out, is slower for seconds at a time.
The least of many repeats is what comes out again best: between two halves of the repeats of the
same rows it differs by a third as much as their median, also when that is scaled by how long a
product took around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from layerscope.engines import engine
from layerscope.engines.workload import MeasureOptions, prepare_workload
from layerscope.interrupts import scratch_folder
from layerscope.prediction.engine_rules import EngineRules
from layerscope.prediction.fusing import rows_of
from layerscope.prediction.layout import layouts_of
from layerscope.prediction.row_features import Work, reorder_of, work_of
from layerscope.report import Report
from layerscope.report.measurement import Run

RUNS = 6
RowTimes = dict[tuple[str, ...], float]  # seconds of a row by its layers


def run_once(report: Report, name: str, threads: int) -> Run:
    """Some repeats of a network on an engine."""
    with scratch_folder() as folder:
        workload = prepare_workload(report, folder)
        options = MeasureOptions(threads, RUNS, memory=False, paired=False)
        run, _ = engine(name).measure(workload, options)
    if run.code == 130:  # a cut-off run is no sample
        raise KeyboardInterrupt
    return run


def layers_and_reorders(runs: Sequence[Run]) -> tuple[RowTimes, RowTimes]:
    """Seconds of layers, and of changes of layout by the layer they are for."""
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
    """Seconds of every row; a change of layout is with the layer it is for."""
    layers, reorders = layers_and_reorders(runs)
    spare = {key[0]: seconds for key, seconds in reorders.items()}
    return {
        key: seconds + sum(spare.pop(name, 0.0) for name in key) for key, seconds in layers.items()
    }


def end_to_end(runs: Sequence[Run]) -> float:
    """Seconds of the quickest repeat."""
    return min(min(run.timing.runs_s) for run in runs)


def around(runs: Sequence[Run]) -> float:
    """Seconds of a network's runs that are in no row."""
    return max(min(min(run.rows[-1].runs_s) for run in runs), 0.0)


def together(networks: Sequence[Sequence[Run]]) -> float:
    """The quickest repeat over the sum of the quickest rows, which are not all of one repeat."""
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


def works_of(report: Report, runs: Sequence[Run], rules: EngineRules) -> list[tuple[Work, float]]:
    """Work and time of every row, and of every change of layout that is to be expected."""
    readers = readers_of(report)
    layouts = layouts_of(report, rows_of(report, rules), rules)
    found: list[tuple[Work, float]] = []
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
