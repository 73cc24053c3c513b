"""A measurement as text, Markdown, csv or JSON."""

from __future__ import annotations

from fractions import Fraction

from layerscope.errors import UnknownName
from layerscope.escaping import csv_cell
from layerscope.export.footer import stamps
from layerscope.export.grid import Cell, TimeView, lay_out, markdown, named
from layerscope.export.run_json import giga, write_json
from layerscope.export.run_lines import (
    AT_LEAST,
    UNKNOWN,
    lines_of,
    rate_text,
    stamp,
    time_text,
)
from layerscope.export.side_by_side import side_by_side
from layerscope.report.measurement import Measurement, Run, total_s
from layerscope.report.numbers import ratio_text
from layerscope.report.timed import TimedRow, timed
from layerscope.report.types import Report

FORMS = ("text", "markdown", "csv", "json")
HEAD = (
    "layer", "type", "time", "%", "cum %", "GFLOP/s", "GB/s", "FLOP/B", "MxNxK", "roof",
    "% of roof",
)  # fmt: skip
CSV = (
    "layer", "kind", "type", "layers", "time_s", "min_s", "median_s", "share", "cumulative",
    "flops", "bytes", "gflops_s", "gb_s", "intensity", "m", "n", "k", "gemms", "roof", "roof_share",
)  # fmt: skip


def write(
    measurement: Measurement,
    report: Report,
    form: str = "text",
    view: TimeView | None = None,
) -> str:
    """The measurement in that form."""
    view = view or TimeView()
    if form == "json":
        return write_json(measurement, report)
    if form == "csv":
        return _csv(measurement, report, view)
    if form not in FORMS:
        raise UnknownName("form", form, FORMS, f"; choose from {', '.join(FORMS)} or boda")
    blocks = []
    for run in measurement.runs:
        rows = timed(report, run, measurement.machine, sort=view.sort)
        cells = _cells(rows, run, view.top)
        table = markdown(cells) if form == "markdown" else lay_out(cells, view.width, view.style)
        fusion = "" if run.fusion is None else f", fusion {run.fusion}"
        head = stamps([f"{run.engine}{fusion}"], form) + "\n"
        below = stamps(lines_of(run, rows, report, measurement.machine), form) if view.stamp else ""
        blocks.append((head if len(measurement.runs) > 1 else "") + table)
        blocks += [below] if below else []
    if len(measurement.runs) > 1:
        blocks.append(side_by_side(measurement, report, view, form))
    if view.stamp:
        blocks.append(stamps((*measurement.failures, stamp(measurement)), form))
    return "\n".join(blocks)


def _cells(rows: list[TimedRow], run: Run, top: int | None) -> list[list[Cell]]:
    table = [[named(HEAD[0]), named(HEAD[1]), *(Cell(title) for title in HEAD[2:])]]
    table[0][-2] = named(HEAD[-2])
    whole = run.timing.end_to_end_s
    table += [_row(each) for each in rows[:top]]
    if top is not None and top < len(rows):
        rest = total_s(each.row for each in rows[top:])
        sign = AT_LEAST if any(each.row.time_s is None for each in rows[top:]) else ""
        share = sign + _percent(rest / whole) if whole else UNKNOWN
        blank = [Cell("")] * (len(HEAD) - 4)
        words = f"{len(rows) - top} more rows"
        table.append([named(words), named(""), Cell(sign + time_text(rest)), Cell(share), *blank])
    flops = sum(each.flops for each in rows)
    moved = sum(each.moved_bytes for each in rows)
    table.append(
        [
            named("end to end"), named(""), Cell(time_text(whole)),
            Cell("100.0" if whole else UNKNOWN), Cell(""),
            Cell(rate_text(flops / whole if whole else None)),
            Cell(rate_text(moved / whole if whole else None)),
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
    unknown = UNKNOWN if each.row.time_s is None else ""
    return [
        named(each.row.name),
        named(each.op or each.row.kind),
        Cell(time_text(each.row.time_s)),
        Cell(_percent(each.share)),
        Cell(_cumulative(each)),
        Cell(rate_text(each.flops_s) if layer else ""),
        Cell(rate_text(each.bytes_s) if layer else ""),
        Cell(ratio_text(Fraction(each.intensity)) if layer and each.moved_bytes else ""),
        Cell(product),
        named(each.roof.name if each.roof else unknown),
        Cell(f"{each.roof.share:.0%}" if each.roof else unknown),
    ]


def _cumulative(each: TimedRow) -> str:
    sign = AT_LEAST if each.bound and each.cumulative is not None else ""
    return sign + _percent(each.cumulative)


def _percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{share * 100:.1f}"


def _bounded(each: TimedRow) -> object:
    """The cumulative share for csv, with the sign of a lower bound."""
    if each.cumulative is None or not each.bound:
        return each.cumulative
    return f"{AT_LEAST.strip()}{each.cumulative!r}"


def _csv(measurement: Measurement, report: Report, view: TimeView) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("engine", "fusion", *CSV))
    for run in measurement.runs:
        for each in timed(report, run, measurement.machine, sort=view.sort)[: view.top]:
            row, gemm, roof = each.row, each.gemm, each.roof
            unknown = UNKNOWN if row.time_s is None else ""
            writer.writerow(
                csv_cell(UNKNOWN if value is None else value)
                for value in (
                    run.engine, run.fusion, row.name, row.kind, each.op, " ".join(row.layers),
                    row.time_s, row.min_s, row.median_s, each.share, _bounded(each), each.flops,
                    each.moved_bytes, giga(each.flops_s), giga(each.bytes_s), each.intensity,
                    *((gemm.m, gemm.n, gemm.k, gemm.count) if gemm else ("", "", "", "")),
                    roof.name if roof else unknown, roof.share if roof else unknown,
                )
            )  # fmt: skip
    return out.getvalue()
