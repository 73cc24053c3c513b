"""Micro-benchmarks of this machine, once, kept for its processor and engine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Any

from msgspec import Struct

from layerscope.analysis.costs import costs
from layerscope.analysis.fields import Fields
from layerscope.analysis.memory import liveness
from layerscope.analysis.shapes import infer
from layerscope.conventions import convention
from layerscope.engines import Progress, engine, quiet
from layerscope.engines.affinity import pinned
from layerscope.engines.cache import forget, keep, load
from layerscope.engines.machine import cached_machine, caches, identity, roofs_now, threads_of
from layerscope.graph import Graph
from layerscope.prediction.engine_rules import NO_RULES, EngineRules, rules_of
from layerscope.prediction.floors import Limits
from layerscope.prediction.microbenchmarks import networks
from layerscope.prediction.nearest import Model, Roofs, Sample, fit
from layerscope.prediction.row_times import around, run_once, together, works_of
from layerscope.report import Report
from layerscope.report.measurement import Machine, Run
from layerscope.version import __version__

SECONDS = 240.0  # after which no further micro-network is begun
PASSES = 5  # far apart, because a machine may be slow for a while
START_S = 2e-6
FORM = 6  # of the file; one of another form is measured again

NO_LIMITS = Limits({}, 1.0)


class Calibration(Struct, frozen=True):
    """Everything that was measured: work and seconds."""

    cpu: str
    engine: str
    engine_version: str
    threads: int
    samples: tuple[Sample, ...]
    contention: float
    seconds: float
    measured: str
    around_s: float = 0.0  # of a run, before its first row and after its last
    together: float = 1.0  # a run over the sum of its rows, which are not at their best at once
    rules: EngineRules = NO_RULES  # of the engine on this processor
    limits: Limits = NO_LIMITS
    form: int = 1

    def model(self) -> Model:
        """The fitted model; its scale is the best that was seen."""
        return fit(self.samples, roofs_of(self.samples))


def roofs_of(samples: Sequence[Sample]) -> Roofs:
    """The best rates that were seen, of operations and of bytes."""
    flops = sorted(s.work.flops / s.time_s for s in samples)
    moved = sorted(s.work.bytes / s.time_s for s in samples)
    return Roofs(flops[int(len(flops) * 0.98)], moved[int(len(moved) * 0.95)], START_S)


def known(name: str, threads: int) -> Calibration | None:
    """What was measured here before with this version of the engine."""
    found = load("calibration", _key(name, threads), Calibration)
    if found is None or found.form != FORM or found.engine_version != engine(name).version():
        return None
    if not found.samples or min(sample.time_s for sample in found.samples) <= 0:
        forget("calibration", _key(name, threads), "no samples, or one that took no time")
        return None
    return found


def engine_rules(name: str) -> EngineRules:
    """What an engine does on this processor, where it writes the graph that it runs."""
    if name != "onnxruntime":
        return NO_RULES
    from layerscope.engines.onnxruntime_sessions import optimised_model
    from layerscope.lower.onnx import lower

    def optimise(graph: Graph) -> Any:
        report = report_of(graph)
        return optimised_model(lower(graph, report.shapes, report.costs).SerializeToString())

    return rules_of(optimise)


def limits_of(machines: Sequence[Machine], threads: int, samples: Sequence[Sample]) -> Limits:
    """The highest rates that were measured here; without a known cache, memory has no limit."""
    kept = cached_machine()
    machines = [*machines, kept] if kept else machines
    peaks = [peak.flops.best for each in machines if (peak := each.peak("fp32", threads))]
    drams = [dram.rate.best for each in machines if (dram := each.level("DRAM", threads))]
    held = caches()
    return Limits(
        flops_s={"fp32": max([*peaks, roofs_of(samples).flops_s])},
        dram_bytes_s=max(drams, default=1.0),
        cache_bytes=held[max(held)] if held and drams else None,
    )


def _key(name: str, threads: int) -> str:
    return f"{identity()}, {name}, {threads} threads"


def calibrate(
    name: str = "onnxruntime",
    threads: int | None = None,
    progress: Progress = quiet,
    graphs: Sequence[Graph] | None = None,
) -> Calibration:
    """Run the micro-networks and keep what their layers took."""
    threads = threads_of(threads)
    rules = engine_rules(name)
    made = list(networks(rules)) if graphs is None else list(graphs)
    reports = list(map(report_of, made))
    seen: dict[int, list[Run]] = {}
    busy: list[float] = []
    started = time.perf_counter()
    steps = len(made) * PASSES
    roofs = [roofs_now(threads)]
    with pinned(threads):
        for step in range(steps):
            n = step % len(made)
            progress(f"calibrate {made[n].name}", step, steps)
            if time.perf_counter() - started > SECONDS:
                break
            run = run_once(reports[n], name, threads)
            busy.append(run.timing.contention)
            seen.setdefault(n, []).append(run)
    roofs.append(roofs_now(threads))
    progress("done", steps, steps)
    samples = [
        Sample(work, seconds, n)
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


def report_of(graph: Graph) -> Report:
    """The exact account of a graph."""
    shapes = infer(graph)
    return Report(
        graph=graph,
        shapes=shapes,
        costs=costs(graph, shapes),
        fields=Fields(graph, shapes),
        memory=liveness(graph, shapes),
        convention=convention("exact"),
        version=__version__,
    )
