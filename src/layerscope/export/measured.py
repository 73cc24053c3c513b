"""A measurement (`measure`): a row per layer, times of engines side by side, and notes."""

from __future__ import annotations

from fractions import Fraction

from layerscope.export.grid import Blocks, Cell, Grid, Lines, named
from layerscope.export.run_json import giga
from layerscope.export.run_json import write_json as write_run_json
from layerscope.export.run_lines import (
    AT_LEAST,
    UNKNOWN,
    facts,
    lines_of,
    rate_text,
    stamp_of,
)
from layerscope.export.side_by_side import side_by_side
from layerscope.report.measurement import Measurement, Run, total_s
from layerscope.report.numbers import ratio_text, time_text
from layerscope.report.timed import TimedRow, timed

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
        fusion = "" if run.fusion is None else f", fusion {run.fusion}"
        title = f"{run.engine}{fusion}" if several else ""
        found.append(Grid(_cells(rows, run, top), (), title, totals=1, in_csv=False))
        if stamp:
            found.append(Lines(lines_of(run, rows, report, measurement.machine)))
    if several:
        found += side_by_side(measurement, report)
    if stamp:
        found.append(Lines((*measurement.failures, stamp_of(measurement))))
    return found


def csv_blocks(
    measurement: Measurement, *, sort: bool = False, top: int | None = None, stamp: bool = True
) -> Blocks:
    """One row per layer and run with exact figures, for csv and data frames."""
    rows = [[named(name) for name in CSV]]
    report = measurement.report
    for run in measurement.runs:
        chosen = timed(report, run, measurement.machine, sort=sort)[:top]
        rows += [_exact_row(run, each) for each in chosen]
    return [Grid(rows), Lines(facts(measurement, report) if stamp else ())]


def _exact_row(run: Run, each: TimedRow) -> list[Cell]:
    row, gemm, roof = each.row, each.gemm, each.roof
    unknown = UNKNOWN if each.lacks_roof else ""
    counted: tuple[float | str | None, ...] = ("",) * 5  # of a row that is no layer
    if row.kind == "layer":
        intensity = each.intensity if each.moved_bytes else ""
        rates = (giga(each.flops_s), giga(each.bytes_s))
        counted = (
            (each.flops, each.moved_bytes, *rates, intensity) if each.is_complete else (None,) * 5
        )
    values = (
        run.engine, run.fusion, row.name, row.kind, each.op, " ".join(row.layers),
        row.time_s, row.min_s, row.median_s, each.share, _bounded(each), *counted,
        *((gemm.m, gemm.n, gemm.k, gemm.count) if gemm else ("", "", "", "")),
        roof.name if roof else unknown, roof.share if roof else unknown,
    )  # fmt: skip
    return [Cell(UNKNOWN, value=value) for value in values]


def _bounded(each: TimedRow) -> float | str | None:
    """The cumulative share, with the sign of a lower bound."""
    if each.cumulative is None or not each.bound:
        return each.cumulative
    return f"{AT_LEAST.strip()}{each.cumulative!r}"


def write_json(measurement: Measurement) -> str:
    """The JSON text that `-o run.json` writes."""
    return write_run_json(measurement, measurement.report)


def _cells(rows: list[TimedRow], run: Run, top: int | None) -> list[list[Cell]]:
    words = ("layer", "type", "roof")
    table = [[Cell(title, title in words, drop=rank) for title, rank in HEAD.items()]]
    whole = run.timing.end_to_end_s
    table += [_row(each) for each in rows[:top]]
    if top is not None and top < len(rows):
        rest = total_s(each.row for each in rows[top:])
        sign = AT_LEAST if any(each.row.time_s is None for each in rows[top:]) else ""
        share = sign + _percent(rest / whole) if whole else UNKNOWN
        blank = [Cell("")] * (len(HEAD) - 4)
        more = f"{len(rows) - top} more rows"
        table.append([named(more), named(""), Cell(sign + time_text(rest)), Cell(share), *blank])
    flops = sum(each.flops for each in rows)
    moved = sum(each.moved_bytes for each in rows)
    least = "" if all(each.is_complete for each in rows) else AT_LEAST
    ratio = ratio_text(Fraction(flops, moved)) if moved else ""
    table.append(
        [
            named("end to end"), named(""), Cell(time_text(whole)),
            Cell("100.0" if whole else UNKNOWN), Cell(""),
            Cell(least + rate_text(flops / whole) if whole else UNKNOWN),
            Cell(least + rate_text(moved / whole) if whole else UNKNOWN),
            Cell(UNKNOWN if least else ratio), Cell(""), named(""),
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
    unknown = UNKNOWN if each.lacks_roof else ""
    intensity = ratio_text(Fraction(each.intensity)) if layer and each.moved_bytes else ""
    return [
        named(each.row.name),
        named(each.op or each.row.kind),
        Cell(time_text(each.row.time_s)),
        Cell(_percent(each.share)),
        Cell(_cumulative(each)),
        Cell(rate_text(each.flops_s) if layer else ""),
        Cell(rate_text(each.bytes_s) if layer else ""),
        Cell(intensity if each.is_complete else UNKNOWN),
        Cell(product),
        named(each.roof.name if each.roof else unknown),
        Cell(f"{each.roof.share:.0%}" if each.roof else unknown),
    ]


def _cumulative(each: TimedRow) -> str:
    sign = AT_LEAST if each.bound and each.cumulative is not None else ""
    return sign + _percent(each.cumulative)


def _percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{share * 100:.1f}"
