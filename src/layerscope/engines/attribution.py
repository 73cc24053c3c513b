"""Attribute the times of an engine's nodes to source layers, in rows that add up to the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from statistics import median

from msgspec import Struct

from layerscope.engines.clock import RunSample, contention, middle, spread
from layerscope.engines.energy import locked, source_text, zones_of
from layerscope.engines.mapping import Group, LayerMapping
from layerscope.engines.onnx_nodes import EngineGraph
from layerscope.engines.workload import MeasureOptions
from layerscope.report.measurement import (
    Energy,
    Kind,
    LayerTime,
    MemoryUse,
    Run,
    Timer,
    Timing,
    total_s,
)

SHOWN = 4  # names of layers in a row; further ones are only counted
BUSY = 1.05


class EngineTimes(Struct, frozen=True):
    """Per run: seconds by index of the node, and the clock's sample."""

    mapping: LayerMapping
    graph: EngineGraph
    seconds: Sequence[Mapping[int, float]]  # index -1: nodes that are not found in the graph
    samples: Sequence[RunSample]
    unprofiled: Sequence[RunSample] = ()


class RunInfo(Struct, frozen=True):
    """What a run has besides times; a `code` other than 0 says that it ended early."""

    engine: str
    version: str
    memory: MemoryUse
    timers: Sequence[Timer] = ()
    notes: Sequence[str] = ()
    complete: bool = True
    code: int = 0


def attribute_times(times: EngineTimes, options: MeasureOptions, info: RunInfo) -> Run:
    """Rows of the run with the median end-to-end time; the last row is the unattributed rest."""
    chosen = middle(times.samples)
    sample = times.samples[chosen]
    rows = [_row(group, times, chosen) for group in times.mapping.groups]
    attributed = total_s(row for row in rows if row.kind == "layer")
    layout = total_s(row for row in rows if row.kind == "layout")
    rest = sample.wall_s - attributed - layout
    rests = _unattributed(times)
    rows.append(
        LayerTime(
            "unattributed", "unattributed", (), rest, min(rests), median(rests),
            runs_s=tuple(rests),
        )
    )  # fmt: skip
    walls = [s.wall_s for s in times.samples]
    plain = [s.wall_s for s in times.unprofiled]
    busy = contention([*times.samples, *times.unprofiled], options.threads)
    timing = Timing(
        end_to_end_s=sample.wall_s,
        attributed_s=attributed,
        layout_s=layout,
        unattributed_s=rest,
        min_s=min(walls),
        median_s=median(walls),
        spread=spread(walls),
        cpu_s=sample.cpu_s,
        contention=busy,
        overhead=_overhead(walls, plain),
        unprofiled_min_s=min(plain, default=None),
        unprofiled_median_s=median(plain) if plain else None,
        runs_s=tuple(walls),
        unprofiled_s=tuple(plain),
    )
    notes = tuple(info.notes)
    if busy > BUSY:
        notes += (
            f"contention {busy:.2f}: other programs took the CPU for {busy - 1:.0%} of the time "
            "that this one had it; times are too long by about as much",
        )
    energy = energy_of([*times.samples, *times.unprofiled], sample.wall_s, options.power_w)
    if energy is None and locked(zones_of()):
        notes += ("the processor's energy counter may not be read by this user; --power W assumes",)
    return Run(
        engine=info.engine,
        engine_version=info.version,
        threads=options.threads,
        fusion=options.fusion,
        timing=timing,
        rows=tuple(rows),
        removed=times.mapping.removed,
        memory=info.memory,
        timers=tuple(info.timers),
        notes=notes,
        energy=energy,
        complete=info.complete,
        code=info.code,
    )


def energy_of(samples: Sequence[RunSample], run_s: float, power_w: float | None) -> Energy | None:
    """Energy of a run that took `run_s`: by --power, else by the counters around the timed runs."""
    if power_w is not None:
        return Energy(power_w * run_s, power_w, "assumed by --power")
    joules = [sample.joules for sample in samples if sample.joules is not None]
    seconds = fsum(sample.wall_s for sample in samples)
    if len(joules) < len(samples) or not any(joules) or not seconds:
        return None
    watts = fsum(joules) / seconds
    return Energy(watts * run_s, watts, source_text(zones_of()))


def _overhead(profiled: Sequence[float], plain: Sequence[float]) -> float | None:
    """How much longer profiled runs take: the median over pairs of consecutive runs."""
    if not plain:
        return None
    return median(a / b for a, b in zip(profiled, plain, strict=False)) - 1


def _unattributed(times: EngineTimes) -> list[float]:
    """Seconds of each run that no node with layers explains."""
    explained = {
        index
        for group in times.mapping.groups
        if group.layers
        for index in group.nodes
        if index >= 0
    }
    return [
        sample.wall_s - sum(t for index, t in seconds.items() if index in explained)
        for sample, seconds in zip(times.samples, times.seconds, strict=True)
    ]


def _row(group: Group, times: EngineTimes, chosen: int) -> LayerTime:
    seconds = [sum(run.get(index, 0.0) for index in group.nodes) for run in times.seconds]
    nodes = [times.graph.nodes[index] for index in group.nodes]
    kind: Kind = "layout" if group.layout else "layer" if group.layers else "unattributed"
    return LayerTime(
        _row_name(group, times.graph),
        kind,
        group.layers,
        seconds[chosen],
        min(seconds),
        median(seconds),
        tuple(node.name for node in nodes),
        tuple(dict.fromkeys(node.op_type for node in nodes)),
        tuple(seconds),
    )


def _row_name(group: Group, graph: EngineGraph) -> str:
    first = graph.nodes[group.nodes[0]]
    if group.layout:
        return f"{' '.join(group.shown) or 'input'} {first.op_type}"
    if not group.layers:
        return f"unattributed {first.name or first.op_type}"
    text = " + ".join(group.shown[:SHOWN])
    rest = len(group.shown) - SHOWN
    return f"{text} + {rest} more" if rest > 0 else text
