"""Rows that add up: times of an engine's operators as times of source layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from msgspec import Struct

from layerscope.engines.clock import Sample, contention, middle, spread
from layerscope.engines.mapping import Group, Mapped
from layerscope.engines.onnx_nodes import Program
from layerscope.engines.workload import Options
from layerscope.report import Report
from layerscope.report.measurement import Energy, Kind, LayerTime, Run, Timing

SHOWN = 4  # names of layers in a row before the rest is counted
BUSY = 1.05


class Parts(Struct, frozen=True):
    """What an engine hands over: per run, seconds by operator, and the clock's samples."""

    mapped: Mapped
    program: Program
    times: Sequence[Mapping[int, float]]
    samples: Sequence[Sample]
    unprofiled: Sequence[Sample] = ()


def account(
    engine: str, version: str, options: Options, parts: Parts, report: Report, **more: Any
) -> Run:
    """The run whose end-to-end time is the median, as rows; what they do not explain is one too."""
    chosen = middle(parts.samples)
    sample = parts.samples[chosen]
    named = {group: _name(group, parts.program) for group in parts.mapped.groups}
    rows = [_row(group, name, parts, chosen) for group, name in named.items()]
    attributed = sum(row.time_s for row in rows if row.kind == "layer")
    layout = sum(row.time_s for row in rows if row.kind == "layout")
    lost = [
        s.wall_s - sum(t for at, t in times.items() if at >= 0 and at in _known(parts))
        for s, times in zip(parts.samples, parts.times, strict=True)
    ]
    rows.append(
        LayerTime(
            "unattributed", "unattributed", (), sample.wall_s - attributed - layout,
            min(lost), median(lost), runs_s=tuple(lost),
        )
    )  # fmt: skip
    walls = [s.wall_s for s in parts.samples]
    plain = [s.wall_s for s in parts.unprofiled]
    busy = contention([*parts.samples, *parts.unprofiled], options.threads)
    timing = Timing(
        end_to_end_s=sample.wall_s,
        attributed_s=attributed,
        layout_s=layout,
        unattributed_s=sample.wall_s - attributed - layout,
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
    notes = tuple(more.pop("notes", ()))
    if busy > BUSY:
        notes += (
            f"contention {busy:.2f}: other programs took the CPU for {busy - 1:.0%} of the time "
            "that this one had it; times are too long by about as much",
        )
    energy = None
    if options.power_w:
        energy = Energy(options.power_w * sample.wall_s, options.power_w, "assumed")
    return Run(
        engine=engine,
        engine_version=version,
        threads=options.threads,
        fusion=options.fusion,
        timing=timing,
        rows=tuple(rows),
        removed=parts.mapped.removed,
        notes=notes,
        energy=more.pop("energy", None) or energy,
        **more,
    )


def _overhead(profiled: Sequence[float], plain: Sequence[float]) -> float | None:
    """How much longer profiled runs take: the median over pairs, which run one after the other."""
    if not plain:
        return None
    return median(a / b for a, b in zip(profiled, plain, strict=False)) - 1


def _known(parts: Parts) -> set[int]:
    return {at for group in parts.mapped.groups if group.layers for at in group.operators}


def _row(group: Group, name: str, parts: Parts, chosen: int) -> LayerTime:
    times = [sum(run.get(at, 0.0) for at in group.operators) for run in parts.times]
    operators = [parts.program.operators[at] for at in group.operators]
    kind: Kind = "layout" if group.layout else "layer" if group.layers else "unattributed"
    return LayerTime(
        name,
        kind,
        group.layers,
        times[chosen],
        min(times),
        median(times),
        tuple(op.name for op in operators),
        tuple(dict.fromkeys(op.kind for op in operators)),
        tuple(times),
    )


def _name(group: Group, program: Program) -> str:
    first = program.operators[group.operators[0]]
    if group.layout:
        return f"{' '.join(group.shown) or 'input'} {first.kind}"
    if not group.layers:
        return f"unattributed {first.name or first.kind}"
    text = " + ".join(group.shown[:SHOWN])
    rest = len(group.shown) - SHOWN
    return f"{text} + {rest} more" if rest > 0 else text
