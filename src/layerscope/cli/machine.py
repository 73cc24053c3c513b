"""layerscope machine: peak FLOP/s and bandwidths of this machine or of a data sheet."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from layerscope.cli.network import MACHINES, WHOLE_NUMBER
from layerscope.cli.output import (
    RESULT_FORMS,
    chosen_form,
    deliver,
    deliver_blocks,
    deliver_result,
    form_options,
    progress_bar,
    report_cache_problems,
)
from layerscope.errors import UsageError

if TYPE_CHECKING:
    from layerscope.export.grid import Blocks
    from layerscope.prediction.calibration import Calibration

EXAMPLES = """\b
Examples:
  layerscope machine                 # measured once and cached
  layerscope machine --again
  layerscope machine --calibrate     # micro-benchmarks for `predict`
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
@click.option(
    "--on",
    metavar="NAME",
    shell_complete=MACHINES,
    help="Print the data sheet of an accelerator.",
)
@click.option("--list", "listed", is_flag=True, help="List the accelerators.")
@form_options(RESULT_FORMS)
def command(form: str | None, output: str | None, **options: Unpack[MachineOptions]) -> None:
    """Measure peak FLOP/s of matrix products per dtype, and the bandwidth of caches and memory."""
    from layerscope.engines.accelerators import machine_of
    from layerscope.engines.machine import cached_machine, measure_machine

    form = chosen_form(form, output, RESULT_FORMS)
    again, listed = options["again"], options["listed"]
    on = None if options["on"] == "this" else options["on"]
    if sum((again or options["calibrate"], on is not None, listed)) > 1:
        raise UsageError("--again, --calibrate, --on and --list cannot be combined")
    if options["threads"] is not None and not options["calibrate"]:
        raise UsageError("--threads needs --calibrate")
    if options["calibrate"]:
        found = _calibrated(options["threads"], again)
        _deliver(_of_calibration(found), form, output, "Calibration")
    elif listed:
        _deliver(_listing(), form, output, "Accelerators")
    elif on is not None:
        deliver_result(machine_of(on), form, output, {})
    else:
        show = progress_bar()
        try:
            machine = (None if again else cached_machine()) or measure_machine(show)
        finally:
            show("", 1, 1)
        deliver_result(machine, form, output, {})
    report_cache_problems()


def _deliver(blocks: Blocks, form: str, output: str | None, title: str) -> None:
    """Write a table that is no result of the API; its JSON has one object per row."""
    if form != "json":
        deliver_blocks(blocks, form, output, title)
        return
    from layerscope.escaping import json_text
    from layerscope.export.render import records

    document = {"kind": "machine", "schema": 1, "title": title.lower(), "rows": records(blocks)}
    deliver(json_text(document), output, form)


def _calibrated(threads: int | None, again: bool) -> Calibration:
    """Calibrate unless there is a cached result."""
    from layerscope.engines.machine import threads_of
    from layerscope.prediction.calibration import cached_calibration, calibrate

    threads = threads_of(threads)
    show = progress_bar()
    try:
        return (None if again else cached_calibration("onnxruntime", threads)) or calibrate(
            "onnxruntime", threads, show
        )
    finally:
        show("", 1, 1)


def _of_calibration(found: Calibration) -> Blocks:
    """The prediction errors of a calibration, by kind of layer."""
    from layerscope.export.grid import Cell, Grid, Lines, named

    model = found.model()
    rows = [[named("kind"), Cell("error"), Cell("layers")]]
    for kind, error in sorted(model.errors.items(), key=lambda item: item[1]):
        count = len(model.samples[kind])
        rows.append([named(kind), Cell(f"{error:.0%}", value=error), Cell(str(count), value=count)])
    lines = [
        f"{found.engine} {found.engine_version} on {found.threads} threads: "
        f"{len(found.samples)} layers of micro-networks in {found.seconds:.0f} s, contention "
        f"{found.contention:.2f}.",
        f"Cross-validated error of whole networks {model.total_error:.0%}.",
        f"{found.cpu} · {found.measured}",
    ]
    return [Grid(rows), Lines(lines)]


def _listing() -> Blocks:
    from layerscope.engines.accelerators import ACCELERATORS
    from layerscope.export.grid import Cell, Grid, Lines, named

    head = [
        named("name"), named("accelerator", 5), Cell("fp32"), Cell("fp16"), Cell("int8", drop=2),
        Cell("GB/s"), Cell("cache MB", drop=4), Cell("W", drop=3),
    ]  # fmt: skip
    rows = [head]
    for name, sheet in ACCELERATORS.items():
        peaks = [sheet.tflops.get(kind) for kind in ("fp32", "fp16", "int8")]
        peaks[1] = peaks[1] or sheet.tflops.get("bf16")
        figures = [*peaks, sheet.gb_s, sheet.cache_mb, sheet.watts or None]
        cells = [Cell("" if n is None else f"{n:g}", value="" if n is None else n) for n in figures]
        rows.append([named(name), named(sheet.says), *cells])
    names = ("name", "accelerator", "fp32_tflops", "fp16_tflops", "int8_tops", "gb_s", "cache_mb",
             "watts")  # fmt: skip
    return [Grid(rows, names=names), Lines(["TFLOP/s (TOP/s of int8), dense; fp16 or bf16."])]
