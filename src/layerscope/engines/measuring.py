"""One or several engines on one network: what each gives, kept together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from layerscope.engines import ENGINES, Progress, engine, quiet
from layerscope.engines.machine import known_machine, raised, threads_of
from layerscope.engines.workload import LEAST_RUNS, Fusion, Options, Subject, subject_of
from layerscope.errors import EngineError, LayerscopeError, MissingExtra, UnknownName, UsageError
from layerscope.graph.serialize import to_plain
from layerscope.interrupts import acknowledge, scratch_folder
from layerscope.report import Report
from layerscope.report.measurement import Energy, Machine, Measurement, Run, Timer
from layerscope.report.timed import timed
from layerscope.version import __version__

FUSIONS: dict[str, tuple[Fusion, ...]] = {"on": ("on",), "off": ("off",), "both": ("on", "off")}
MOST_RUNS = 10_000  # the times of all layers in every run are kept
SLACK = 0.05  # by which a row may be above a roof: both were measured
TOLERANCE = 1e-3  # of the largest output: engines sum in different orders


def measure(
    report: Report,
    name: str = "onnxruntime",
    *,
    threads: int | None = None,
    runs: int = LEAST_RUNS,
    fusion: str = "on",
    power: float | None = None,
    path: str | None = None,
    loaded_s: float = 0.0,
    progress: Progress | None = None,
) -> Measurement:
    """Measure a report's network on that engine, or on `all` that are installed."""
    names = list(ENGINES) if name == "all" else name.split(",")
    for each in names:
        if each not in ENGINES:
            known = ", ".join(ENGINES)
            raise UnknownName("engine", each, ENGINES, f"; known: {known}, all")
    if fusion not in FUSIONS:
        raise UnknownName("fusion", fusion, FUSIONS, f"; known: {', '.join(FUSIONS)}")
    if not LEAST_RUNS <= runs <= MOST_RUNS:
        raise UsageError(f"--runs {runs}, expected {LEAST_RUNS} to {MOST_RUNS:,}")
    threads = threads_of(threads)
    if power is not None and power <= 0:
        raise UsageError(f"--power {power}, expected watts")
    for each in names if len(names) == 1 else ():
        engine(each).version()  # raise for one that is missing before anything is written
    with scratch_folder() as folder:
        started = time.perf_counter()
        subject = subject_of(report, folder, path)
        before = (
            Timer("load", 1, loaded_s),
            Timer("lower", 1, time.perf_counter() - started),
        )
        tasks = [
            (each, Options(threads, runs, kind, power))
            for each in names
            for kind in FUSIONS[fusion]
        ]
        found, failures = _run_all(subject, tasks, progress or quiet)
    if not found:
        raise EngineError("; ".join(failures) or f"{report.name}: no engine ran it")
    machine = known_machine()
    whole = all(run.code != 130 for run in found)  # after Ctrl-C nothing more is measured
    if machine is not None and whole and any(above(report, run, machine) for run in found):
        machine = raised(machine, threads, report.float_dtype)
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


def above(report: Report, run: Run, machine: Machine) -> list[str]:
    """Rows that are quicker than a roof allows, which then was measured too low."""
    return [
        each.row.name
        for each in timed(report, run, machine)
        if each.roof is not None and each.roof.share > 1 + SLACK and each.share > 0.01
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
    subject: Subject, tasks: Sequence[tuple[str, Options]], progress: Progress
) -> tuple[list[Run], list[str]]:
    """Every engine's run; one that fails is told of, and the others are kept."""
    found: list[Run] = []
    failures: list[str] = []
    first: dict[str, Any] = {}
    for name, options in tasks:
        meter = _Meter()
        try:
            run, outputs = engine(name).measure(subject, options, progress)
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
        joules = meter.joules()
        if meter.locked and options.power_w is None:
            note = "the processor's energy counter may not be read by this user; --power W assumes"
            run = replace(run, notes=(*run.notes, note))
        if joules is not None and options.power_w is None:
            watts = joules / meter.seconds
            energy = Energy(watts * run.timing.end_to_end_s, watts, "rapl, mean while measuring")
            run = replace(run, energy=energy)
        if first:
            run = replace(run, difference=difference(first, outputs))
            if run.difference is not None and run.difference > TOLERANCE:
                note = f"outputs differ by {run.difference:.1e} of their size: more than rounding"
                run = replace(run, notes=(*run.notes, note))
        elif outputs:
            first = outputs
        found.append(run)
        if run.code == 130:
            break
    return found, failures


def difference(first: dict[str, Any], second: dict[str, Any]) -> float | None:
    """The largest distance of two engines' outputs, over the largest output.

    It is infinite where only one of them is not a number, or infinite.
    """
    import numpy

    worst = None
    for name, mine in first.items():
        other = second.get(name)
        if other is None or other.shape != mine.shape or not mine.size:
            continue
        a, b = mine.astype(numpy.float64), other.astype(numpy.float64)
        finite = numpy.isfinite(a) & numpy.isfinite(b)
        if not numpy.array_equal(a[~finite], b[~finite], equal_nan=True):
            return float("inf")
        a, b = a[finite], b[finite]
        size = float(numpy.max(numpy.abs(a), initial=0.0)) or 1.0
        worst = max(worst or 0.0, float(numpy.max(numpy.abs(a - b), initial=0.0)) / size)
    return worst


class _Meter:
    """Joules from the processor's own counter, where this user may read it."""

    PATH = "/sys/class/powercap/intel-rapl:0/energy_uj"

    def __init__(self) -> None:
        self.locked = False  # a counter is there, and not for this user
        self._before = self._read()
        self._started = time.perf_counter()
        self.seconds = 0.0

    def joules(self) -> float | None:
        """What passed since; None without a counter, or when it went round."""
        after = self._read()
        self.seconds = time.perf_counter() - self._started
        if self._before is None or after is None or after < self._before:
            return None
        return (after - self._before) / 1e6

    def _read(self) -> int | None:
        try:
            with open(self.PATH, encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError) as error:
            self.locked = isinstance(error, PermissionError)
            return None
