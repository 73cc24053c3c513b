"""Peak FLOP/s and bandwidths of a machine (`machine`), measured or from a data sheet."""

from __future__ import annotations

from layerscope.escaping import json_text
from layerscope.export.grid import Blocks, Cell, Grid, Lines, named
from layerscope.report.measurement import Machine, Rate
from layerscope.report.numbers import bytes_text, rate_text

SCHEMA = 1


def headline(machine: Machine) -> str:
    """The processor in one line."""
    return f"{machine.cpu} ({machine.source})"


def blocks(machine: Machine, *, stamp: bool = True) -> Blocks:
    """One row per limit; threads, median and spread only where it was measured."""
    measured = any(limit.runs for limit in _rates(machine))
    head = [named("limit"), Cell("threads", drop=2), Cell("best"), Cell("median", drop=3)]
    head += [Cell("spread", drop=1), Cell("runs", drop=4)]
    names = ["limit", "threads", "best_per_s", "median_per_s", "spread", "runs"]
    rows = [head]
    for peak in machine.peaks:
        unit = "OP/s" if peak.dtype.startswith("int") else "FLOP/s"
        rows.append([named(f"products in {peak.dtype}"), *_cells(peak.threads, peak.flops, unit)])
    for level in machine.levels:
        size = f" of {bytes_text(level.size_bytes)}" if level.size_bytes else ""
        rows.append([named(f"{level.name}{size}"), *_cells(level.threads, level.rate, "B/s")])
    if not measured:
        rows = [[row[0], row[2]] for row in rows]
        rows[0][1] = Cell("peak")
        names = ["limit", "peak_per_s"]
    when = f", {machine.measured}" if machine.measured else ""
    found: list[Grid | Lines] = [Grid(rows, names=names)]
    return [*found, Lines([f"{machine.cpu} · {machine.source}{when}"])] if stamp else found


def write_json(machine: Machine) -> str:
    """All limits as JSON; a data sheet has no threads, runs or medians."""
    fields: dict[str, object] = {n: getattr(machine, n) for n in machine.__struct_fields__}
    if not any(rate.runs for rate in _rates(machine)):
        fields = {
            "cpu": machine.cpu,
            "peaks": [{"dtype": each.dtype, "flops": {"best": each.flops.best}, "by": each.by}
                      for each in machine.peaks],
            "levels": [{"name": each.name, "rate": {"best": each.rate.best}}
                       for each in machine.levels],
            "source": machine.source,
        }  # fmt: skip
    return json_text({"kind": "machine", "schema": SCHEMA, **fields})


def _rates(machine: Machine) -> list[Rate]:
    peaks = [peak.flops for peak in machine.peaks]
    return peaks + [level.rate for level in machine.levels]


def _cells(threads: int, rate: Rate, unit: str) -> list[Cell]:
    values = [Cell(rate_text(value, unit), value=value) for value in (rate.best, rate.median)]
    runs = Cell(str(rate.runs) if rate.runs else "", value=rate.runs)
    spread = Cell(f"{rate.spread:.0%}", value=rate.spread)
    return [Cell(str(threads), value=threads), *values, spread, runs]
