"""Lines under the table of a run: times, attribution, memory, peak FLOP/s, energy, the stamp."""

from __future__ import annotations

from layerscope.report.measurement import Energy, Machine, Measurement, Run, total_s
from layerscope.report.numbers import bytes_text, counted, short_text, time_text
from layerscope.report.timed import TimedRow, threads_of
from layerscope.report.types import Report

UNKNOWN, AT_LEAST, AT_MOST = "?", "≥ ", "≤ "
SHORT = 0.85  # share of the peak FLOP/s below which the slowest layers are named


def stamp_of(measurement: Measurement) -> str:
    """One line: version, network, engines with threads, runs and contention, processor, date."""
    machine = measurement.machine
    parts = (
        f"layerscope {measurement.version}",
        measurement.network,
        f"batch {measurement.batch}",
        measurement.dtype,
        *dict.fromkeys(map(_conditions, measurement.runs)),
        f"roofs of {machine.cpu}" if machine else "roofs unknown",
        measurement.measured,
    )
    return " · ".join(part for part in parts if part)


def _conditions(run: Run) -> str:
    """Engine, threads, runs and contention of a run; what is not known is named."""
    runs, busy = len(run.timing.runs_s), run.timing.contention
    facts = {
        "threads": counted(run.threads, "thread") if run.threads is not None else "",
        "runs": counted(runs, "run") if runs else "",
        "contention": f"contention {busy:.2f}" if busy is not None else "",
    }
    stated = [f"{run.engine} {run.engine_version}".strip(), *filter(None, facts.values())]
    missing = [name for name, text in facts.items() if not text]
    listed = " and ".join(filter(None, (", ".join(missing[:-1]), *missing[-1:])))
    return ", ".join(stated) + (f", {listed} unknown" if missing else "")


def facts(measurement: Measurement, report: Report) -> list[str]:
    """Lines under a notation printed from runs: energy, notes, engines that failed, the stamp."""
    lines = [
        line for run in measurement.runs for line in (*energy_lines(run.energy), *notes_of(run))
    ]
    coverage = (str(report.coverage),) if report.coverage.unknown else ()
    return [*dict.fromkeys(lines), *measurement.failures, *coverage, stamp_of(measurement)]


def rate_text(value: float | None) -> str:
    """In units of 1e9 per second."""
    if value is None:
        return UNKNOWN
    scaled = value / 1e9
    return (
        f"{scaled:.0f}" if scaled >= 100 else f"{scaled:.1f}" if scaled >= 10 else f"{scaled:.2f}"
    )


def lines_of(run: Run, rows: list[TimedRow], report: Report, machine: Machine | None) -> list[str]:
    """Lines under the table: total and spread, attribution, memory, peak FLOP/s, energy, notes."""
    timing = run.timing
    lines = _end_to_end(run)
    if timing.overhead is not None and timing.unprofiled_median_s is not None:
        lines.append(
            f"Profiling overhead {timing.overhead:+.1%}: without it "
            f"{time_text(timing.unprofiled_median_s)}, "
            f"min {time_text(timing.unprofiled_min_s or 0)}."
        )
    lines += memory_lines(run)
    lines += peak_lines(run, rows, report, machine)
    lines += energy_lines(run.energy)
    if run.difference is not None:
        lines.append(
            f"Largest relative difference to the outputs of the first engine: {run.difference:.1e}."
        )
    if run.removed:
        names = ", ".join(run.removed[:5])
        more = f" and {len(run.removed) - 5} more" if len(run.removed) > 5 else ""
        lines.append(f"Folded or removed by the engine, no time of their own: {names}{more}.")
    return lines + notes_of(run)


def _end_to_end(run: Run) -> list[str]:
    """The end-to-end time with its spread, and the shares of it, if they are known."""
    timing = run.timing
    whole, busy = timing.end_to_end_s, timing.contention
    if whole is None:
        spent = time_text(total_s(run.rows))
        return [f"End to end unknown: --runtime S gives it. The rows add up to {spent}."]
    if timing.runs_s and None not in (timing.min_s, timing.spread, timing.cpu_s, busy):
        spread = (
            f"the median of {len(timing.runs_s)} runs (min {time_text(timing.min_s)}, "
            f"interquartile range {timing.spread:.1%})"
            if len(timing.runs_s) != 1
            else "of a single run"
        )
        first = (
            f"End to end {time_text(whole)}, {spread}; CPU time {time_text(timing.cpu_s)}; "
            f"contention {busy:.2f}."
        )
    else:
        first = f"End to end {time_text(whole)}; the rows add up to {time_text(total_s(run.rows))}."
    shares = {
        "Attributed to source layers": timing.attributed_s,
        "layout changes": timing.layout_s,
        "unattributed": timing.unattributed_s,
    }
    parts = [f"{name} {share / whole:.1%}" for name, share in shares.items() if share is not None]
    return [first, f"{', '.join(parts)}."]


def energy_lines(energy: Energy | None) -> list[str]:
    """Energy of one run and where its watts come from."""
    if energy is None:
        return []
    joules = UNKNOWN if energy.joules is None else f"{energy.joules:.3g}"
    sign = AT_MOST if energy.bound else ""
    return [f"Energy {sign}{joules} J per run at {sign}{energy.watts:.3g} W, {energy.source}."]


def notes_of(run: Run) -> list[str]:
    """Notes of a run, marked if it ended early."""
    return [note if run.complete else f"INCOMPLETE: {note}" for note in run.notes]


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
    peak = machine.peak(report.float_dtype, threads_of(run, machine)) if machine else None
    if machine is None or peak is None:
        return ["No roofline: run `layerscope machine` once to measure this processor."]
    macs = sum(each.macs for each in rows)
    if run.timing.end_to_end_s is None:
        return []
    rate = 2 * macs / run.timing.end_to_end_s
    share = rate / peak.flops.best
    least = "" if all(each.is_complete for each in rows) else "at least "
    lines = [
        f"Matrix products run at {least}{short_text(int(rate))}FLOP/s, {least}{share:.0%} of the "
        f"peak of {short_text(int(peak.flops.best))}FLOP/s measured for {peak.dtype} on "
        f"{threads_of(run, machine)} threads."
    ]
    if share >= SHORT or not macs:
        return lines
    ideal = {id(each): 2 * each.macs / peak.flops.best for each in rows}
    lost = {id(each): each.row.time_s - ideal[id(each)] for each in rows if each.row.time_s}
    whole = sum(lost.values())
    slowest = []
    for each in sorted(rows, key=lambda each: -lost.get(id(each), 0.0))[:5]:
        missing = lost.get(id(each), 0.0)
        if missing <= 0 or missing < 0.02 * whole:
            break
        slowest.append(f"{each.row.name} {missing / whole:.0%} ({_rate_or_reason(each)})")
    if slowest:
        lines.append(f"Largest shares of the time lost to the peak: {'; '.join(slowest)}.")
    return lines


def _rate_or_reason(each: TimedRow) -> str:
    if each.row.kind != "layer":
        return each.row.kind
    if not each.is_complete:
        return "figures unknown"
    if not each.macs:
        return "no matrix products"
    if each.roof is not None and each.roof.name != "compute":
        return f"{each.roof.name} bandwidth, {each.intensity:.1f} FLOP/B"
    gemm = each.gemm
    if gemm is not None and min(gemm.m, gemm.n, gemm.k) < 64:
        small = min(("M", gemm.m), ("N", gemm.n), ("K", gemm.k), key=lambda pair: pair[1])
        return f"{small[0]} of {small[1]} is small"
    return f"{rate_text(each.flops_s)} GFLOP/s"
