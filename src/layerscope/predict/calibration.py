"""Micro-benchmarks of this machine, once, kept for its processor and engine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from layerscope.analysis.costs import costs
from layerscope.analysis.fields import fields
from layerscope.analysis.memory import liveness
from layerscope.analysis.shapes import infer
from layerscope.conventions import convention
from layerscope.engines import Progress, engine, quiet
from layerscope.engines.cache import keep, load
from layerscope.engines.machine import cores, identity
from layerscope.engines.subject import Options, subject_of
from layerscope.graph import Graph
from layerscope.predict.local import Model, Roofs, Sample, fit
from layerscope.predict.micro import networks
from layerscope.predict.work import Work, work_of
from layerscope.report import Report
from layerscope.report.measurement import Run
from layerscope.version import __version__

SECONDS = 280.0  # after which no further micro-network is begun
PASSES = 3  # a machine may be slow for a while: the best of some times far apart
RUNS = 6
START_S = 2e-6


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
    return found if found and found.engine_version == engine(name).version() else None


def _key(name: str, threads: int) -> str:
    return f"{identity()}, {name}, {threads} threads"


def calibrate(
    name: str = "onnxruntime",
    threads: int | None = None,
    progress: Progress = quiet,
    graphs: Sequence[Graph] | None = None,
) -> Calibration:
    """Run the micro-networks and keep what their layers took."""
    threads = threads or cores()
    made = list(networks()) if graphs is None else list(graphs)
    best: dict[tuple[int, int], Sample] = {}
    busy: list[float] = []
    started = time.perf_counter()
    steps = len(made) * PASSES
    for step in range(steps):
        n = step % len(made)
        progress(f"calibrate {made[n].name}", step, steps)
        if time.perf_counter() - started > SECONDS:
            break
        report = report_of(made[n])
        with TemporaryDirectory(prefix="layerscope-") as folder:
            subject = subject_of(report, folder)
            options = Options(threads, RUNS, memory=False, paired=False)
            run, _ = engine(name).measure(subject, options)
        busy.append(run.timing.contention)
        for at, (work, seconds) in enumerate(works_of(report, run)):
            before = best.get((n, at))
            if before is None or seconds < before.time_s:
                best[n, at] = Sample(work, seconds, n)
    progress("done", steps, steps)
    samples = list(best.values())
    found = Calibration(
        cpu=identity(),
        engine=name,
        engine_version=engine(name).version(),
        threads=threads,
        samples=tuple(samples),
        contention=sorted(busy)[len(busy) // 2],
        seconds=time.perf_counter() - started,
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
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
        fields=fields(graph, shapes),
        memory=liveness(graph, shapes),
        convention=convention("exact"),
        version=__version__,
    )


def readers_of(report: Report) -> dict[str, list[str]]:
    """Nodes that read each tensor."""
    found: dict[str, list[str]] = {}
    for node in report.graph.nodes:
        for name in node.inputs:
            found.setdefault(name, []).append(node.name)
    return found


def works_of(report: Report, run: Run) -> list[tuple[Work, float]]:
    """Work and the shortest time of every row; a change of layout is with the layer it is for."""
    readers = readers_of(report)
    spare: dict[str, float] = {}
    for row in run.rows:
        if row.kind == "layout" and row.layers:
            spare[row.layers[0]] = spare.get(row.layers[0], 0.0) + row.min_s
    found: list[tuple[Work, float]] = []
    for row in run.rows:
        if row.kind != "layer":
            continue
        layers: list[Any] = [report.by_name[n] for n in row.layers if n in report.by_name]
        if not layers or row.min_s <= 0:
            continue
        more = sum(spare.pop(name, 0.0) for name in row.layers)
        found.append((work_of(layers, report, readers), row.min_s + more))
    return found
