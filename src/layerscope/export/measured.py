"""A measurement (`measure`): a row per layer, times of engines side by side, and notes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from layerscope.export.grid import Blocks, Cell, Grid, Lines, named
from layerscope.export.run_json import write_json as write_run_json
from layerscope.report.measurement import Machine, Measurement, Run
from layerscope.report.numbers import bytes_text, ratio_text, short_text
from layerscope.report.timed import TimedRow, timed
from layerscope.report.types import Report

# Titles of the printed columns; the numbers say which a narrow terminal leaves out first.
HEAD = {
    "layer": 0, "type": 2, "time": 0, "%": 0, "cum %": 5, "GFLOP/s": 3, "GB/s": 4, "FLOP/B": 6,
    "MxNxK": 8, "roof": 7, "% of roof": 1,
}  # fmt: skip
CSV = (
    "engine", "fusion", "layer", "kind", "type", "layers", "time_s", "min_s", "median_s", "share",
    "cumulative", "flops", "bytes", "gflops_s", "gb_s", "intensity", "m", "n", "k", "gemms", "roof",
    "roof_share",
)  # fmt: skip
SHORT = 0.85  # share of the peak FLOP/s below which the slowest layers are named


def headline(measurement: Measurement) -> str:
    """Network, engines and times in one line."""
    runs = ", ".join(
        f"{run.engine} {time_text(run.timing.end_to_end_s)}" for run in measurement.runs
    )
    return f"of {measurement.network}, batch {measurement.batch}: {runs or 'no run'}"


def blocks(
    measurement: Measurement, *, sort: bool = False, top: int | None = None, stamp: bool = True
) -> Blocks:
    """The layers of every run, all runs side by side if there are several, and notes."""
    report, found = measurement.report, list[Grid | Lines]()
    several = len(measurement.runs) > 1
    for run in measurement.runs:
        rows = timed(report, run, measurement.machine, sort=sort)
        title = f"{run.engine}, fusion {run.fusion}" if several else ""
        found.append(Grid(_cells(rows, run, top), (), title, totals=1, in_csv=False))
        found.append(Lines(_below(run, rows, report, measurement.machine)))
    if several:
        found += _side_by_side(measurement, report)
    return [*found, Lines((*measurement.failures, *([stamp_of(measurement)] if stamp else [])))]


def csv_blocks(measurement: Measurement, *, stamp: bool = True, **view: object) -> Blocks:
    """One row per layer and run with exact figures, for csv and data frames."""
    rows = [[named(name) for name in CSV]]
    report = measurement.report
    for run in measurement.runs:
        rows += [_exact_row(run, each) for each in timed(report, run, measurement.machine)]
    lines = [*measurement.failures, *([stamp_of(measurement)] if stamp else [])]
    return [Grid(rows), Lines(lines)]


def _exact_row(run: Run, each: TimedRow) -> list[Cell]:
    row, gemm, roof = each.row, each.gemm, each.roof
    values = (
        run.engine, run.fusion, row.name, row.kind, each.op, " ".join(row.layers),
        row.time_s, row.min_s, row.median_s, each.share, each.cumulative, each.flops,
        each.moved_bytes, each.flops_s / 1e9, each.bytes_s / 1e9, each.intensity,
        *((gemm.m, gemm.n, gemm.k, gemm.count) if gemm else ("", "", "", "")),
        roof.name if roof else "", roof.share if roof else "",
    )  # fmt: skip
    return [Cell("", value=value) for value in values]


def write_json(measurement: Measurement, **view: object) -> str:
    """The JSON text that `-o run.json` writes."""
    return write_run_json(measurement, measurement.report)


def stamp_of(measurement: Measurement) -> str:
    """One line: version, network, engines, threads, processor and date."""
    engines = ", ".join(
        dict.fromkeys(f"{run.engine} {run.engine_version}" for run in measurement.runs)
    )
    threads = measurement.runs[0].threads if measurement.runs else 0
    cpu = measurement.machine.cpu if measurement.machine else "roofs unknown"
    return (
        f"layerscope {measurement.version} · {measurement.network} · batch {measurement.batch} · "
        f"{measurement.dtype} · {engines} · {threads} threads · {cpu} · {measurement.measured}"
    )


def _cells(rows: list[TimedRow], run: Run, top: int | None) -> list[list[Cell]]:
    words = ("layer", "type", "roof")
    table = [[Cell(title, title in words, drop=rank) for title, rank in HEAD.items()]]
    table += [_row(each) for each in rows[:top]]
    if top is not None and top < len(rows):
        rest = sum(each.row.time_s for each in rows[top:])
        share = rest / run.timing.end_to_end_s
        blank = [Cell("")] * (len(HEAD) - 4)
        more = f"{len(rows) - top} more rows"
        table.append([named(more), named(""), Cell(time_text(rest)), Cell(_percent(share)), *blank])
    flops = sum(each.flops for each in rows)
    moved = sum(each.moved_bytes for each in rows)
    whole = run.timing.end_to_end_s
    table.append(
        [
            named("end to end"), named(""), Cell(time_text(whole)), Cell("100.0"), Cell(""),
            Cell(_rate(flops / whole)), Cell(_rate(moved / whole)),
            Cell(ratio_text(Fraction(flops, moved)) if moved else ""), Cell(""), named(""),
            Cell(""),
        ]
    )  # fmt: skip
    return table


def _row(each: TimedRow) -> list[Cell]:
    gemm = each.gemm
    product = f"{gemm.m}x{gemm.n}x{gemm.k}" if gemm else ""
    if gemm and gemm.count > 1:
        product += f" × {gemm.count}"
    layer = each.row.kind == "layer"
    return [
        named(each.row.name),
        named(each.op or each.row.kind),
        Cell(time_text(each.row.time_s)),
        Cell(_percent(each.share)),
        Cell(_percent(each.cumulative)),
        Cell(_rate(each.flops_s) if layer else ""),
        Cell(_rate(each.bytes_s) if layer else ""),
        Cell(ratio_text(Fraction(each.intensity)) if layer and each.moved_bytes else ""),
        Cell(product),
        named(each.roof.name if each.roof else ""),
        Cell(f"{each.roof.share:.0%}" if each.roof else ""),
    ]


def _rate(value: float) -> str:
    """In units of 1e9 per second."""
    scaled = value / 1e9
    return (
        f"{scaled:.0f}" if scaled >= 100 else f"{scaled:.1f}" if scaled >= 10 else f"{scaled:.2f}"
    )


def _percent(share: float) -> str:
    return f"{share * 100:.1f}"


def time_text(seconds: float) -> str:
    """A time with three significant digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        value = seconds / scale
        if abs(value) >= 1 or unit == "us":
            digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
            return f"{value:.{digits}f} {unit}"
    return ""


def _below(run: Run, rows: list[TimedRow], report: Report, machine: Machine | None) -> list[str]:
    """Lines under the table: total and spread, attribution, memory, peak FLOP/s, energy, notes."""
    timing = run.timing
    spread = (
        f"the median of {len(timing.runs_s)} runs (min {time_text(timing.min_s)}, interquartile "
        f"range {timing.spread:.1%})"
        if len(timing.runs_s) != 1
        else "of a single run"
    )
    lines = [
        f"End to end {time_text(timing.end_to_end_s)}, {spread}; CPU "
        f"time {time_text(timing.cpu_s)}; contention {timing.contention:.2f}.",
        f"Attributed to source layers {timing.attributed:.1%}, layout changes "
        f"{timing.layout_s / timing.end_to_end_s:.1%}, unattributed "
        f"{timing.unattributed_s / timing.end_to_end_s:.1%}.",
    ]
    if timing.overhead is not None and timing.unprofiled_median_s is not None:
        lines.append(
            f"Profiling overhead {timing.overhead:+.1%}: without it "
            f"{time_text(timing.unprofiled_median_s)}, "
            f"min {time_text(timing.unprofiled_min_s or 0)}."
        )
    lines += memory_lines(run)
    lines += peak_lines(run, rows, report, machine)
    if run.energy is not None:
        watts = f"{run.energy.watts:.3g} W, {run.energy.source}"
        lines.append(f"Energy {run.energy.joules:.3g} J per run at {watts}.")
    if run.difference is not None:
        lines.append(
            f"Largest relative difference to the outputs of the first engine: {run.difference:.1e}."
        )
    if run.removed:
        names = ", ".join(run.removed[:5])
        more = f" and {len(run.removed) - 5} more" if len(run.removed) > 5 else ""
        lines.append(f"Folded or removed by the engine, no time of their own: {names}{more}.")
    return lines + [note if run.complete else f"INCOMPLETE: {note}" for note in run.notes]


def memory_lines(run: Run) -> list[str]:
    """Measured peak activation memory beside the predicted one."""
    memory = run.memory
    if memory.measured_peak_bytes is None:
        return []
    line = f"Peak activation memory {bytes_text(memory.measured_peak_bytes)} measured"
    if memory.predicted_peak_bytes is not None:
        apart = memory.measured_peak_bytes / memory.predicted_peak_bytes - 1
        predicted = bytes_text(memory.predicted_peak_bytes)
        line += f", {predicted} predicted from tensor lifetimes ({apart:+.1%})"
    return [f"{line}; without fusion {bytes_text(memory.source_peak_bytes)}."]


def peak_lines(
    run: Run, rows: list[TimedRow], report: Report, machine: Machine | None
) -> list[str]:
    """Achieved FLOP/s beside the measured peak, and the layers that lose most time."""
    peak = machine.peak(report.float_dtype, run.threads) if machine else None
    if machine is None or peak is None:
        return ["No roofline: run `layerscope machine` once to measure this processor."]
    macs = sum(each.macs for each in rows)
    rate = 2 * macs / run.timing.end_to_end_s
    share = rate / peak.flops.best
    lines = [
        f"Matrix products run at {short_text(int(rate))}FLOP/s, {share:.0%} of the peak of "
        f"{short_text(int(peak.flops.best))}FLOP/s measured for {peak.dtype} on "
        f"{run.threads} threads."
    ]
    if share >= SHORT or not macs:
        return lines
    ideal = {id(each): 2 * each.macs / peak.flops.best for each in rows}
    lost = sorted(rows, key=lambda each: ideal[id(each)] - each.row.time_s)
    whole = sum(each.row.time_s - ideal[id(each)] for each in rows)
    slowest = []
    for each in lost[:5]:
        missing = each.row.time_s - ideal[id(each)]
        if missing <= 0 or missing < 0.02 * whole:
            break
        slowest.append(f"{each.row.name} {missing / whole:.0%} ({_why(each)})")
    if slowest:
        lines.append(f"Largest shares of the time lost to the peak: {'; '.join(slowest)}.")
    return lines


def _why(each: TimedRow) -> str:
    if each.row.kind != "layer":
        return each.row.kind
    if not each.macs:
        return "no matrix products"
    if each.roof is not None and each.roof.name != "compute":
        return f"{each.roof.name} bandwidth, {each.intensity:.1f} FLOP/B"
    gemm = each.gemm
    if gemm is not None and min(gemm.m, gemm.n, gemm.k) < 64:
        small = min(("M", gemm.m), ("N", gemm.n), ("K", gemm.k), key=lambda pair: pair[1])
        return f"{small[0]} of {small[1]} is small"
    return f"{each.flops_s / 1e9:.0f} GFLOP/s"


def _side_by_side(measurement: Measurement, report: Report) -> list[Grid | Lines]:
    """Layers of all runs side by side, the fastest marked with *; time saved by fusion."""
    runs = measurement.runs
    titles = [f"{run.engine}{'' if run.fusion == 'on' else ' unfused'}" for run in runs]
    keyed = [_by_layer(run) for run in runs]
    table = [[named("layer"), *(Cell(title) for title in titles)]]
    joined = _common(keyed, [node.name for node in report.graph.nodes])
    for members in joined:
        times = [sum(set_time(each, members)) for each in keyed]
        least = min((t for t in times if t > 0), default=0.0)
        marks = ["*" if t == least and len(runs) > 1 else " " for t in times]
        name = " + ".join(members[:2]) + (f" + {len(members) - 2} more" if len(members) > 2 else "")
        cells = [
            Cell(time_text(t) + mark if t else "") for t, mark in zip(times, marks, strict=True)
        ]
        table.append([named(name), *cells])
    whole = [run.timing.end_to_end_s for run in runs]
    table.append(
        [named("end to end"),
         *(Cell(time_text(t) + ("*" if t == min(whole) else " ")) for t in whole)]
    )  # fmt: skip
    lines = [fusing(runs, report)] if {run.fusion for run in runs} == {"on", "off"} else []
    return [Grid(table, totals=1, in_csv=False), Lines([line for line in lines if line])]


def fusing(runs: tuple[Run, ...], report: Report) -> str:
    """Time saved by all optimisations, and by fusing layers into others."""
    on = next(run for run in runs if run.fusion == "on")
    off = next((r for r in runs if r.fusion == "off" and r.engine == on.engine), None)
    if off is None:
        return ""
    with_others = {n for row in on.rows if len(row.layers) > 1 for n in row.layers[1:]}
    alone = sum(
        row.time_s
        for row in off.rows
        if row.kind == "layer" and all(layer in with_others for layer in row.layers)
    )
    saved = off.timing.end_to_end_s - on.timing.end_to_end_s
    return (
        f"All optimisations save {time_text(saved)} of {time_text(off.timing.end_to_end_s)} "
        f"({saved / off.timing.end_to_end_s:.0%}); the layers that are fused into others take "
        f"{time_text(alone)} on their own ({alone / off.timing.end_to_end_s:.0%})."
    )


def _by_layer(run: Run) -> dict[tuple[str, ...], float]:
    return {row.layers: row.time_s for row in run.rows if row.kind == "layer"}


def set_time(rows: dict[tuple[str, ...], float], members: tuple[str, ...]) -> list[float]:
    """Times of the rows whose layers are all among `members`."""
    wanted = set(members)
    return [time for layers, time in rows.items() if set(layers) <= wanted]


def _common(
    keyed: Sequence[dict[tuple[str, ...], float]], order: Sequence[str]
) -> list[tuple[str, ...]]:
    """The smallest groups of layers that are a union of whole rows in every run."""
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    for rows in keyed:
        for layers in rows:
            for layer in layers[1:]:
                root[find(layer)] = find(layers[0])
    timed_layers = {layer for rows in keyed for layers in rows for layer in layers}
    groups: dict[str, list[str]] = {}
    for name in order:
        if name in timed_layers:
            groups.setdefault(find(name), []).append(name)
    return [tuple(group) for group in groups.values()]
