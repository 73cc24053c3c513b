"""Calibrate this machine: run micro-benchmarks once and cache them per processor and engine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING

from msgspec import Struct

from layerscope.engines import Progress, engine, quiet
from layerscope.engines.affinity import pinned
from layerscope.engines.cache import forget, keep, load
from layerscope.engines.machine import cached_machine, caches, identity, roofs_now, threads_of
from layerscope.graph import Graph
from layerscope.prediction.engine_rules import NO_RULES, EngineRules, rules_of
from layerscope.prediction.floors import Limits
from layerscope.prediction.microbenchmarks import networks
from layerscope.prediction.nearest import NearestModel, Roofs, RowSample, fit
from layerscope.prediction.row_times import around, run_once, together, works_of
from layerscope.report.build import report_of
from layerscope.report.measurement import Machine, Run

if TYPE_CHECKING:
    from onnx import ModelProto

SECONDS = 240.0  # after which no further micro-network is begun
PASSES = 5  # over all micro-networks, because a machine may be slow for a while
START_S = 2e-6
FORM = 6  # version of the file; another version is measured again

NO_LIMITS = Limits({}, 1.0)


class Calibration(Struct, frozen=True):
    """Everything that was measured, as it is cached in a file."""

    cpu: str
    engine: str
    engine_version: str
    threads: int
    samples: tuple[RowSample, ...]
    contention: float
    seconds: float
    measured: str
    around_s: float = 0.0  # of a run, before its first row and after its last one
    together: float = 1.0  # seconds of a run over the sum of its rows' minima
    rules: EngineRules = NO_RULES  # of the engine on this processor
    limits: Limits = NO_LIMITS
    form: int = 1

    def model(self) -> NearestModel:
        """Fit the model of row times, relative to the best rates that were measured."""
        return fit(self.samples, roofs_of(self.samples))


def roofs_of(samples: Sequence[RowSample]) -> Roofs:
    """The highest rates of operations and of bytes among the samples."""
    flops = sorted(s.work.flops / s.time_s for s in samples)
    moved = sorted(s.work.bytes / s.time_s for s in samples)
    return Roofs(flops[int(len(flops) * 0.98)], moved[int(len(moved) * 0.95)], START_S)


def cached_calibration(name: str, threads: int) -> Calibration | None:
    """The calibration made earlier on this processor with this version of the engine."""
    found = load("calibration", _key(name, threads), Calibration)
    if found is None or found.form != FORM or found.engine_version != engine(name).version():
        return None
    if not found.samples or min(sample.time_s for sample in found.samples) <= 0:
        forget("calibration", _key(name, threads), "no samples, or one that took no time")
        return None
    return found


def engine_rules(name: str) -> EngineRules:
    """Layout and fusion rules of an engine, if it can write the graph that it runs."""
    if name != "onnxruntime":
        return NO_RULES
    from layerscope.engines.onnxruntime_sessions import optimised_model
    from layerscope.lower.onnx import lower

    def optimise(graph: Graph) -> ModelProto:
        report = report_of(graph)
        return optimised_model(lower(graph, report.shapes, report.costs).SerializeToString())

    return rules_of(optimise)


def limits_of(machines: Sequence[Machine], threads: int, samples: Sequence[RowSample]) -> Limits:
    """The highest rates measured; memory has no limit if the cache size is unknown."""
    kept = cached_machine()
    machines = [*machines, kept] if kept else machines
    peaks = [peak.flops.best for each in machines if (peak := each.peak("fp32", threads))]
    drams = [dram.rate.best for each in machines if (dram := each.level("DRAM", threads))]
    cache_sizes = caches()
    return Limits(
        flops_s={"fp32": max([*peaks, roofs_of(samples).flops_s])},
        dram_bytes_s=max(drams, default=1.0),
        cache_bytes=cache_sizes[max(cache_sizes)] if cache_sizes and drams else None,
    )


def _key(name: str, threads: int) -> str:
    return f"{identity()}, {name}, {threads} threads"


def calibrate(
    name: str = "onnxruntime",
    threads: int | None = None,
    progress: Progress = quiet,
    graphs: Sequence[Graph] | None = None,
) -> Calibration:
    """Run the micro-networks and cache the times of their rows."""
    engine(name)  # raises if it is not installed
    threads = threads_of(threads)
    rules = engine_rules(name)
    graphs = list(networks(rules) if graphs is None else graphs)
    reports = list(map(report_of, graphs))
    seen: dict[int, list[Run]] = {}
    busy: list[float] = []
    started = time.perf_counter()
    steps = len(graphs) * PASSES
    roofs = [roofs_now(threads)]
    with pinned(threads):
        for step in range(steps):
            n = step % len(graphs)
            progress(f"calibrate {graphs[n].name}", step, steps)
            if time.perf_counter() - started > SECONDS:
                break
            run = run_once(reports[n], name, threads)
            assert run.timing.contention is not None
            busy.append(run.timing.contention)
            seen.setdefault(n, []).append(run)
    roofs.append(roofs_now(threads))
    progress("done", steps, steps)
    samples = [
        RowSample(work, seconds, n)
        for n, runs in seen.items()
        for work, seconds in works_of(reports[n], runs, rules)
    ]
    found = Calibration(
        cpu=identity(),
        engine=name,
        engine_version=engine(name).version(),
        threads=threads,
        samples=tuple(samples),
        contention=sorted(busy)[len(busy) // 2],
        seconds=time.perf_counter() - started,
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
        around_s=median([around(runs) for runs in seen.values()]),
        together=together(list(seen.values())),
        rules=rules,
        limits=limits_of(roofs, threads, samples),
        form=FORM,
    )
    keep("calibration", _key(name, threads), found)
    return found
