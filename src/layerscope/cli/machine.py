"""layerscope machine: peak FLOP/s and bandwidths of this machine or of a data sheet."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from layerscope.cli.network import WHOLE_NUMBER
from layerscope.cli.output import deliver, progress_bar, report_cache_problems, terminal
from layerscope.errors import UsageError

if TYPE_CHECKING:
    from layerscope.export.grid import Cell
    from layerscope.report.measurement import Machine, Rate

EXAMPLES = """\b
Examples:
  layerscope machine                 # measured once and cached
  layerscope machine --again
  layerscope machine --calibrate     # micro-benchmarks, for layerscope predict
  layerscope machine --on a100
  layerscope machine --list
  layerscope machine --as json -o machine.json
"""


class MachineOptions(TypedDict):
    """Options of the command."""

    again: bool
    calibrate: bool
    threads: int | None
    on: str | None
    listed: bool


@click.command(epilog=EXAMPLES)
@click.option("--again", is_flag=True, help="Measure again, even if there is a cached result.")
@click.option(
    "--calibrate",
    is_flag=True,
    help="Run the micro-benchmarks that `predict` needs; once, under five minutes.",
)
@click.option(
    "--threads",
    "-t",
    type=WHOLE_NUMBER,
    metavar="N",
    help="Threads for --calibrate.  [default: number of CPUs]",
)
@click.option("--on", metavar="NAME", help="Print the data sheet of an accelerator.")
@click.option("--list", "listed", is_flag=True, help="List the accelerators.")
@click.option("--as", "form", type=click.Choice(["text", "json"]), default="text")
@click.option("--output", "-o", metavar="FILE", help="Write to FILE.")
def command(form: str, output: str | None, **options: Unpack[MachineOptions]) -> None:
    """Measure peak FLOP/s of matrix products per dtype, and the bandwidth of caches and memory."""
    from layerscope.engines.accelerators import machine_of
    from layerscope.engines.machine import cached_machine, measure_machine
    from layerscope.escaping import json_text

    again, on, listed = options["again"], options["on"], options["listed"]
    if sum((again or options["calibrate"], on is not None, listed)) > 1:
        raise UsageError("--again, --calibrate, --on and --list cannot be combined")
    if options["calibrate"]:
        deliver(_calibrated(options["threads"], again), output)
        report_cache_problems()
        return
    if listed:
        deliver(_listing(), output)
        return
    if on is not None:
        found = machine_of(on)
    else:
        show = progress_bar()
        try:
            found = (None if again else cached_machine()) or measure_machine(show)
        finally:
            show("", 1, 1)
    if form == "text":
        deliver(_text(found, bool(output)), output, form)
    else:
        deliver(json_text(_sheet_document(found) if on is not None else found), output, form)
    report_cache_problems()


def _calibrated(threads: int | None, again: bool) -> str:
    """Calibrate unless there is a cached result; the text gives the prediction errors."""
    from layerscope.engines.machine import threads_of
    from layerscope.prediction.calibration import cached_calibration, calibrate

    threads = threads_of(threads)
    show = progress_bar()
    try:
        found = (None if again else cached_calibration("onnxruntime", threads)) or calibrate(
            "onnxruntime", threads, show
        )
    finally:
        show("", 1, 1)
    model = found.model()
    lines = [
        f"{found.engine} {found.engine_version} on {threads} threads: {len(found.samples)} layers "
        f"of micro-networks in {found.seconds:.0f} s, contention {found.contention:.2f}.",
        f"Cross-validated error of whole networks {model.total_error:.0%}; of layers by kind:",
    ]
    for kind, error in sorted(model.errors.items(), key=lambda item: item[1]):
        lines.append(f"  {kind}: {error:.0%} ({len(model.samples[kind])})")
    return "\n".join([*lines, f"{found.cpu} · {found.measured}"]) + "\n"


def _text(machine: Machine, to_file: bool) -> str:
    from layerscope.export.grid import Cell, lay_out, named
    from layerscope.report.numbers import bytes_text, rate_text

    sheet = machine.source == "data sheet"
    head = ("limit", "peak") if sheet else ("limit", "threads", "best", "median", "spread", "runs")
    rows = [[named(head[0]), *(Cell(title) for title in head[1:])]]
    for peak in machine.peaks:
        rate = peak.flops
        unit = "OP/s" if peak.dtype.startswith("int") else "FLOP/s"
        cells = [Cell(rate_text(rate.best, unit))] if sheet else _cells(peak.threads, rate, unit)
        rows.append([named(f"products in {peak.dtype}"), *cells])
    for level in machine.levels:
        size = f" of {bytes_text(level.size_bytes)}" if level.size_bytes else ""
        rate = level.rate
        cells = [Cell(rate_text(rate.best, "B/s"))] if sheet else _cells(level.threads, rate, "B/s")
        rows.append([named(f"{level.name}{size}"), *cells])
    width, style = terminal(to_file)
    when = f", {machine.measured}" if machine.measured else ""
    return lay_out(rows, width, style) + f"\n{machine.cpu} · {machine.source}{when}\n"


def _sheet_document(machine: Machine) -> object:
    """A data sheet for JSON: the keys of a measured machine that it has values for."""
    return {
        "cpu": machine.cpu,
        "peaks": [{"dtype": each.dtype, "flops": {"best": each.flops.best}, "by": each.by}
                  for each in machine.peaks],
        "levels": [{"name": each.name, "rate": {"best": each.rate.best}}
                   for each in machine.levels],
        "source": machine.source,
    }  # fmt: skip


def _cells(threads: int, rate: Rate, unit: str) -> list[Cell]:
    from layerscope.export.grid import Cell
    from layerscope.report.numbers import rate_text

    values = [rate_text(value, unit) for value in (rate.best, rate.median)]
    runs = str(rate.runs) if rate.runs else ""
    return [Cell(str(threads)), *map(Cell, values), Cell(f"{rate.spread:.0%}"), Cell(runs)]


def _listing() -> str:
    from layerscope.engines.accelerators import ACCELERATORS
    from layerscope.export.grid import Cell, lay_out, named

    style = terminal()[1]
    titles = ("name", "accelerator", "fp32", "fp16", "int8", "GB/s", "cache MB", "W")
    rows = [[named(titles[0]), named(titles[1]), *(Cell(title) for title in titles[2:])]]
    for name, sheet in ACCELERATORS.items():
        peaks = [sheet.tflops.get(kind) for kind in ("fp32", "fp16", "int8")]
        peaks[1] = peaks[1] or sheet.tflops.get("bf16")
        figures = [*peaks, sheet.gb_s, sheet.cache_mb, sheet.watts or None]
        texts = ["" if value is None else f"{value:g}" for value in figures]
        rows.append([named(name), named(sheet.says), *map(Cell, texts)])
    return lay_out(rows, None, style) + "\nTFLOP/s (TOP/s of int8), dense; fp16 or bf16.\n"
