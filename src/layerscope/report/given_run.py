"""Runs that were not measured here: times read from a file, for the layers of a report.

What the file does not say stays None: threads, fusion, number of runs, contention.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import FormatError
from layerscope.graph.types import Graph, Shape
from layerscope.report.measurement import (
    Energy,
    Kind,
    LayerTime,
    MemoryUse,
    Run,
    Timing,
    total_s,
)
from layerscope.report.times_file import Declared, TimesFile
from layerscope.report.tree import is_idle
from layerscope.report.types import Report

LAYOUT = "_inxp"  # end of the names of layout changes in Boda's files


class Given(Struct, frozen=True):
    """The end-to-end time and the power that the user gives."""

    runtime_s: float | None = None
    power_w: float | None = None

    def energy(self, run_s: float | None) -> Energy | None:
        """Energy of a run at that power; joules are None if its time is unknown."""
        if self.power_w is None:
            return None
        joules = None if run_s is None else self.power_w * run_s
        return Energy(joules, self.power_w, "assumed by --power")


def run_of(times: TimesFile, report: Report, given: Given) -> Run:
    """The times of a file as a run; names that are no layer become rows of their own."""
    _check_inputs(times, report)
    layers = report.by_name
    own = [
        _row(name, "layout" if name.endswith(LAYOUT) else "unattributed", (), seconds)
        for name, seconds in times.seconds.items()
        if name not in layers
    ]
    rows = [
        _row(layer.name, "layer", (layer.name,), times.seconds.get(layer.name))
        for layer in report.layers
        if layer.name in times.seconds or not is_idle(layer)
    ]
    whole = given.runtime_s if given.runtime_s is not None else times.runtime_s
    run = _run(f"times from {times.path}", (*rows, *own), report, given, whole)
    notes = [_matched(times.path, len(times.seconds) - len(own), len(times.seconds), rows)]
    spent = total_s(run.rows)
    if whole is not None and spent > whole:
        notes.append(f"the rows add up to {spent:.6g} s, more than the runtime of {whole:.6g} s")
    return replace(run, notes=tuple(notes))


def run_without_times(report: Report, given: Given) -> Run:
    """An end-to-end time and a power alone."""
    return _run("no times of layers", (), report, given, given.runtime_s)


def run_for(run: Run, report: Report, path: str, given: Given) -> Run:
    """A measured run for the layers of a report: rows of other layers become rows of their own."""
    layers = report.by_name
    rows = []
    for row in run.rows:
        is_of_report = all(name in layers for name in row.layers)
        rows.append(row if is_of_report else replace(row, kind="unattributed", layers=()))
    timed = {name for row in rows if row.kind == "layer" for name in row.layers}
    rest = [
        _row(layer.name, "layer", (layer.name,), None)
        for layer in report.layers
        if layer.name not in timed and layer.name not in run.removed and not is_idle(layer)
    ]
    theirs = [row for row in run.rows if row.kind == "layer"]
    kept = [row for row in rows if row.kind == "layer"]
    note = _matched(path, len(kept), len(theirs), (*kept, *rest))
    energy = given.energy(run.timing.end_to_end_s) or run.energy
    timing = _timing(rows, run.timing.end_to_end_s, run.timing)
    return replace(run, rows=(*rows, *rest), timing=timing, energy=energy, notes=(*run.notes, note))


def check_same_inputs(stored: Graph, report: Report, path: str) -> None:
    """Raise if a run was measured with inputs of other shapes or dtypes."""
    theirs = [(tensor.shape, tensor.dtype) for tensor in stored.inputs]
    ours = [(tensor.shape, tensor.dtype) for tensor in report.graph.inputs]
    if theirs != ours:
        raise FormatError(
            f"{path}: measured with inputs {_inputs(theirs)}, the network has {_inputs(ours)}"
        )


def _inputs(tensors: Sequence[tuple[Shape | None, str]]) -> str:
    texts = [f"{_dims(shape)} {dtype}" for shape, dtype in tensors[:3]]
    more = f" and {len(tensors) - 3} more" if len(tensors) > 3 else ""
    return ", ".join(texts) + more


def _dims(shape: Shape | None) -> str:
    return "?" if shape is None else "x".join(map(str, shape)) or "a scalar"


def _check_inputs(times: TimesFile, report: Report) -> None:
    """Raise if the file declares another size of an input or another batch."""
    for tensor in report.graph.inputs:
        declared = times.shapes.get(tensor.name)
        if declared is not None and declared.value != tensor.shape:
            _refuse(times, declared, f"input {tensor.name}", _dims(tensor.shape))
    if times.images is not None and times.images.value != (report.batch,):
        _refuse(times, times.images, "batch", str(report.batch))


def _refuse(times: TimesFile, declared: Declared, what: str, ours: str) -> None:
    raise FormatError(
        f"{times.path}:{declared.line}: {what} {_dims(declared.value)}, in the network {ours}; "
        "give --batch or --input"
    )


def _row(name: str, kind: Kind, layers: tuple[str, ...], seconds: float | None) -> LayerTime:
    return LayerTime(name, kind, layers, seconds, None, None)


def _run(
    engine: str, rows: tuple[LayerTime, ...], report: Report, given: Given, whole: float | None
) -> Run:
    return Run(
        engine=engine,
        engine_version="",
        threads=None,
        fusion=None,
        timing=_timing(rows, whole),
        rows=rows,
        memory=MemoryUse(None, None, report.memory.peak_bytes),
        energy=given.energy(whole),
    )


def _timing(
    rows: Sequence[LayerTime], whole: float | None, measured: Timing | None = None
) -> Timing:
    """Sums of the rows; the rest is that of a measured run, or unknown."""
    attributed = total_s(row for row in rows if row.kind == "layer")
    layout = total_s(row for row in rows if row.kind == "layout") if rows else None
    rest = None if whole is None or layout is None else whole - attributed - layout
    if measured is not None:
        return replace(measured, attributed_s=attributed, layout_s=layout, unattributed_s=rest)
    return Timing(
        end_to_end_s=whole,
        attributed_s=attributed,
        layout_s=layout,
        unattributed_s=rest,
        min_s=None,
        median_s=None,
        spread=None,
        cpu_s=None,
        contention=None,
        overhead=None,
        unprofiled_min_s=None,
        unprofiled_median_s=None,
        runs_s=(),
    )


def _matched(path: str, matched: int, of: int, rows: Iterable[LayerTime]) -> str:
    """One line: how many rows of the file are layers, and how many layers have no time."""
    layers = [name for row in rows for name in row.layers]
    missing = sum(len(row.layers) for row in rows if row.time_s is None)
    without = f"{missing} of {len(layers)} layers have no time (?)" if missing else ""
    return f"{path}: {matched} of {of} rows match a layer; {without or 'every layer has a time'}"
