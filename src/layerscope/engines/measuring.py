"""Measure one network on one or several engines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from layerscope.engines import ENGINES, Progress, engine, quiet
from layerscope.engines.machine import cached_machine, raised, threads_of
from layerscope.engines.workload import (
    USUAL_RUNS,
    Fusion,
    MeasureOptions,
    Workload,
    prepare_workload,
)
from layerscope.errors import EngineError, LayerscopeError, MissingExtra, UnknownName, UsageError
from layerscope.graph.serialize import to_plain
from layerscope.interrupts import acknowledge, scratch_folder
from layerscope.report import Report
from layerscope.report.measurement import Machine, Measurement, Run, Timer
from layerscope.report.quantities import count_of, watts
from layerscope.report.timed import timed
from layerscope.version import __version__

if TYPE_CHECKING:
    from layerscope.engines import Arrays

FUSIONS: dict[str, tuple[Fusion, ...]] = {"on": ("on",), "off": ("off",), "both": ("on", "off")}
MOST_RUNS = 10_000  # the times of all layers in every run are stored
SLACK = 0.05  # by which a row may exceed a limit of the machine: both are measured
TOLERANCE = 1e-3  # of the largest output: engines sum in different orders


class MeasureRequest(Struct, frozen=True):
    """Engines to measure on, and how."""

    engines: str = "onnxruntime"  # names separated by commas, or `all`
    threads: int | None = None  # None: one per CPU
    runs: int = USUAL_RUNS
    fusion: str = "on"  # on, off or both
    power_w: float | None = None

    def tasks(self) -> list[tuple[str, MeasureOptions]]:
        """Engines and their options; raise for an option that is not possible."""
        names = list(ENGINES) if self.engines == "all" else self.engines.split(",")
        names = list(dict.fromkeys(names))
        for name in names:
            if name not in ENGINES:
                raise UnknownName("engine", name, ENGINES, f"; known: {', '.join(ENGINES)}, all")
        if self.fusion not in FUSIONS:
            raise UnknownName("fusion", self.fusion, FUSIONS, f"; known: {', '.join(FUSIONS)}")
        if not 1 <= count_of(self.runs, "--runs") <= MOST_RUNS:
            raise UsageError(f"--runs {self.runs}, expected 1 to {MOST_RUNS:,}")
        threads = threads_of(self.threads)
        if self.power_w is not None:
            watts(self.power_w, "--power")
        return [
            (name, MeasureOptions(threads, self.runs, fusion, self.power_w))
            for name in names
            for fusion in FUSIONS[self.fusion]
        ]


class NetworkSource(Struct, frozen=True):
    """The ONNX file that a report was read from, if any, and the seconds that took."""

    path: str | None = None
    load_s: float = 0.0


def measure(
    report: Report,
    request: MeasureRequest,
    source: NetworkSource,
    progress: Progress | None = None,
) -> Measurement:
    """Measure a report's network on the requested engines."""
    tasks = request.tasks()
    names = {name for name, _ in tasks}
    if len(names) == 1:
        engine(names.pop()).version()  # raises for a missing engine before anything is written
    with scratch_folder() as folder:
        started = time.perf_counter()
        (progress or quiet)(f"{report.name}: write the ONNX model", 0, 1)
        workload = prepare_workload(report, folder, source.path)
        before = (
            Timer("load", 1, source.load_s),
            Timer("lower", 1, time.perf_counter() - started),
        )
        found, failures = _run_all(workload, tasks, progress or quiet)
    if not found:
        raise EngineError("; ".join(failures) or f"{report.name}: no engine ran it")
    if request.runs < USUAL_RUNS:
        found = [replace(run, notes=(*run.notes, _few_runs(request.runs))) for run in found]
    machine = cached_machine()
    whole = all(run.code != 130 for run in found)  # after Ctrl-C nothing more is measured
    if machine is not None and whole and any(above(report, run, machine) for run in found):
        machine = raised(machine, tasks[0][1].threads, report.float_dtype)
        found = [_noted(report, run, machine) for run in found]
    return Measurement(
        network=report.name,
        graph=to_plain(report.graph),
        batch=report.batch,
        dtype=report.dtype,
        runs=tuple(replace(run, timers=(*before, *run.timers)) for run in found),
        machine=machine,
        version=__version__,
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
        failures=tuple(failures),
    )


def _few_runs(runs: int) -> str:
    """The note on a measurement of few runs."""
    what = "1 timed run: its time is no median, and" if runs == 1 else f"{runs} timed runs:"
    return f"{what} quartiles and the overhead of profiling are unreliable below {USUAL_RUNS}"


def above(report: Report, run: Run, machine: Machine) -> list[str]:
    """Rows that are faster than a limit allows, so that the limit was measured too low."""
    return [
        each.row.name
        for each in timed(report, run, machine)
        if each.roof is not None and each.roof.share > 1 + SLACK and (each.share or 0) > 0.01
    ]


def _noted(report: Report, run: Run, machine: Machine) -> Run:
    names = above(report, run, machine)
    if not names:
        return run
    note = (
        f"{len(names)} rows are above a roof, {names[0]} first: the machine was slower when its "
        "roofs were measured; layerscope machine --again"
    )
    return replace(run, notes=(*run.notes, note))


def _run_all(
    workload: Workload, tasks: Sequence[tuple[str, MeasureOptions]], progress: Progress
) -> tuple[list[Run], list[str]]:
    """The run of every engine; an engine that fails becomes a failure, the others are kept."""
    found: list[Run] = []
    failures: list[str] = []
    reference: Arrays = {}  # outputs of the first engine
    for name, options in tasks:
        try:
            run, outputs = engine(name).measure(workload, options, progress)
        except KeyboardInterrupt:
            acknowledge()
            if not found:
                raise
            failures.append(f"{name}: interrupted")
            found[-1] = replace(found[-1], code=130)
            break
        except (MissingExtra, LayerscopeError) as error:
            if len(tasks) == 1:
                raise
            failures.append(f"{name}: {error}")
            continue
        if reference:
            run = _compared(run, reference, outputs)
        elif outputs:
            reference = outputs
        found.append(run)
        if run.code == 130:
            break
    return found, failures


def _compared(run: Run, reference: Arrays, outputs: Arrays) -> Run:
    run = replace(run, difference=difference(reference, outputs))
    if run.difference is not None and run.difference > TOLERANCE:
        note = f"outputs differ by {run.difference:.1e} of their size: more than rounding"
        run = replace(run, notes=(*run.notes, note))
    return run


def difference(first: Arrays, second: Arrays) -> float | None:
    """The largest difference of two engines' outputs, over the largest output.

    It is infinite where only one of two elements is NaN or infinite.
    """
    import numpy

    worst = None
    for name, expected in first.items():
        other = second.get(name)
        if other is None or other.shape != expected.shape or not expected.size:
            continue
        a, b = expected.astype(numpy.float64), other.astype(numpy.float64)
        finite = numpy.isfinite(a) & numpy.isfinite(b)
        if not numpy.array_equal(a[~finite], b[~finite], equal_nan=True):
            return float("inf")
        a, b = a[finite], b[finite]
        size = float(numpy.max(numpy.abs(a), initial=0.0)) or 1.0
        worst = max(worst or 0.0, float(numpy.max(numpy.abs(a - b), initial=0.0)) / size)
    return worst
