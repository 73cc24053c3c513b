"""layerscope measure: time every layer on an engine; `show run.json` prints the run again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from layerscope.cli.language import is_weight_file
from layerscope.cli.network import (
    NETWORK,
    REAL_NUMBER,
    WHOLE_NUMBER,
    NetworkOptions,
    analyze_options,
    file_options,
    input_options,
    names_in,
)
from layerscope.cli.output import (
    RESULT_FORMS,
    chosen_form,
    deliver,
    deliver_result,
    form_options,
    progress_bar,
    report_cache_problems,
)
from layerscope.errors import LayerscopeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layerscope.report.measurement import Measurement

NOTATIONS_OF_RUNS = ("boda",)

EXAMPLES = """\b
Examples:
  layerscope measure resnet50
  layerscope measure nin-nopad --batch 5 --power 45 --as boda
  layerscope measure vgg16 --sort --top 10 -o vgg16.json
  layerscope measure mobilenet_v2 --fusion both
  layerscope measure resnet18 --engine all --threads 1
  layerscope show vgg16.json --as boda --parts layers,profile
  layerscope measure hf:config.json --tokens 512 --decode 1024 --engine torch

\b
Times are those of the run with the median end-to-end time, so rows add up.
The roofline columns need `layerscope machine` to have been run once.
With --tokens and --decode, whole steps of a language model are timed.
"""


# options of show that apply to a run
SHOW_OPTIONS = ("parts", "top", "sort", "no_stamp", "strict", "power")


class RowOptions(TypedDict):
    """Options that choose rows or parts of the output."""

    parts: str | None
    top: int | None
    sort: bool
    no_stamp: bool


class MeasureCommandOptions(NetworkOptions, RowOptions):
    """Options of the command."""

    engine: str
    threads: int | None
    runs: int
    fusion: str
    power: float | None


class Interrupted(LayerscopeError):
    """Ctrl-C, raised after the results so far have been printed."""

    exit_code = 130


@click.command(epilog=EXAMPLES)
@click.argument("network", metavar="NET", type=NETWORK)
@click.option(
    "--engine",
    default="onnxruntime",
    metavar="ENGINE",
    shell_complete=names_in("engines:ENGINES"),
    help="onnxruntime, openvino, torch, a comma-separated list, or all.  [default: onnxruntime]",
)
@input_options
@file_options
@click.option(
    "--threads",
    "-t",
    type=WHOLE_NUMBER,
    metavar="N",
    help="Number of threads.  [default: number of CPUs]",
)
@click.option(
    "--runs",
    type=WHOLE_NUMBER,
    default=10,
    metavar="N",
    help="Timed runs after 3 warm-up runs; fewer than 10 get a note.  [default: 10]",
)
@click.option(
    "--fusion",
    default="on",
    metavar="HOW",
    shell_complete=names_in("engines.measuring:FUSIONS"),
    help="Layer fusion of the engine: on, off or both.  [default: on]",
)
@click.option(
    "--power", type=REAL_NUMBER, metavar="W", help="Power in watts, for the energy of a run."
)
@form_options(RESULT_FORMS, NOTATIONS_OF_RUNS)
@click.option(
    "--parts",
    metavar="A,B,…",
    help="Parts of boda: layers, info, totals, backward, profile, timers.  "
    "[default: all but backward]",
)
@click.option("--sort", is_flag=True, help="Sort by time, longest first.")
@click.option("--top", type=WHOLE_NUMBER, metavar="N", help="Print only the first N rows.")
@click.option("--no-stamp", is_flag=True, help="Leave out the stamp and notes under the table.")
def command(
    network: str, form: str | None, output: str | None, **options: Unpack[MeasureCommandOptions]
) -> None:
    """Time every layer of NET on an engine, with layout changes and unattributed time as rows.

    With -o FILE.json the run is written to the file, and the table is printed as well.
    """
    from layerscope.api.timing import measure_with_report
    from layerscope.engines.measuring import MeasureRequest

    keeps = os.path.splitext(output or "")[1].lower() == ".json"
    shown = chosen_form(form, None if keeps else output, RESULT_FORMS, NOTATIONS_OF_RUNS)
    check_rows(shown, options)
    path = f"hf:{network}" if is_weight_file(network) else network
    if path.startswith("hf:") and None not in (options["tokens"], options["decode"]):
        _measure_steps(path, (form, shown), output, options)
        return
    show = progress_bar()
    try:
        _, found = measure_with_report(
            network,
            MeasureRequest(
                options["engine"],
                options["threads"],
                options["runs"],
                options["fusion"],
                options["power"],
            ),
            show,
            **analyze_options(options),
        )
    finally:
        show("", 1, 1)
    if keeps:
        deliver(found.to_json(), output, "json")
    if not keeps or form != "json":
        deliver_run(found, shown, None if keeps else output, options)
    report_cache_problems()
    _raise_failure(found)


def _measure_steps(
    network: str, forms: tuple[str | None, str], output: str | None, options: MeasureCommandOptions
) -> None:
    """Time the prompt and the token of a language model; `forms` are that asked for and shown."""
    from layerscope.api.generating import steps_of
    from layerscope.api.generating_here import measure_generation
    from layerscope.engines.measuring import MeasureRequest

    (form, shown), keeps = forms, (output or "").lower().endswith(".json")
    if shown in NOTATIONS_OF_RUNS:
        raise UsageError(f"--as {shown} is a table of layers; --tokens with --decode times steps")
    used = {"tokens", "decode", "batch", "dtype", "engine", "threads", "runs", "no_stamp"}
    for name, value in options.items():
        if name not in used and value not in (None, (), False, "on"):
            raise UsageError(
                f"--{name.replace('_', '-')} does not apply to the steps of a language model"
            )
    request = MeasureRequest(options["engine"], options["threads"], options["runs"])
    steps = steps_of(options["tokens"], options["decode"], [options["batch"] or 1])
    show = progress_bar()
    try:
        found = measure_generation(network, steps, request, options["dtype"] or "fp32", show)
    finally:
        show("", 1, 1)
    if keeps:
        deliver(found.to_json(), output, "json")
    if not keeps or form != "json":
        view = {"stamp": not options["no_stamp"]}
        deliver_result(found, shown, None if keeps else output, view)
    if found.code == 130:
        raise Interrupted(found.failures[-1])


def check_rows(form: str | None, options: RowOptions) -> None:
    """Raise for rows or parts that a form does not have."""
    if options["parts"] is not None and form != "boda":
        raise UsageError("--parts needs --as boda")
    if options["top"] is not None and options["top"] < 1:
        raise UsageError(f"--top {options['top']}, expected at least 1")


def _raise_failure(found: Measurement) -> None:
    """Raise the error of a run that ended early, after the results so far have been printed."""
    for run in found.runs:
        if run.code == 130:
            raise Interrupted(f"{run.engine}: {run.notes[0] if run.notes else 'interrupted'}")
        if run.code:
            raise LayerscopeError(f"{run.engine}: {run.notes[0]}")


def show_run(
    path: str, form: str | None, output: str | None, options: Mapping[str, object]
) -> None:
    """Print the run in a file; `options` are those of `show`."""
    from layerscope.export.run_json import read_file
    from layerscope.export.run_json import reading as reading_run

    refuse_options(path, options, SHOW_OPTIONS)
    found = read_file(path)
    form = chosen_form(form, output, RESULT_FORMS, NOTATIONS_OF_RUNS)
    parts, top, sort = options["parts"], options["top"], options["sort"]
    rows: RowOptions = {
        "parts": None if parts is None else str(parts),
        "top": top if isinstance(top, int) else None,
        "sort": sort is not None,
        "no_stamp": bool(options["no_stamp"]),
    }
    check_rows(form, rows)
    if sort not in (None, "time"):
        raise UsageError(f"--sort {sort}: rows of a run are sorted by time")
    power = options["power"]
    with reading_run(path):
        if isinstance(power, float):
            found = _at_power(found, power)
        deliver_run(found, form, output, rows)


def refuse_options(
    path: str,
    options: Mapping[str, object],
    allowed: tuple[str, ...],
    what: str = "a measured run",
) -> None:
    """Raise for an option of a command that does not apply to a file that layerscope wrote."""
    for name, value in options.items():
        if value not in (None, False, ()) and name not in allowed:
            option = {"inputs": "input", "dims": "dim", "everything": "all"}.get(name, name)
            raise UsageError(f"--{option.replace('_', '-')} does not apply to {what}: {path}")


def _at_power(found: Measurement, power_w: float) -> Measurement:
    """The measurement with the energy of each run at that power."""
    from msgspec.structs import replace

    from layerscope.report.given_run import Given
    from layerscope.report.quantities import watts

    given = Given(power_w=watts(power_w, "--power"))
    runs = [replace(run, energy=given.energy(run.timing.end_to_end_s)) for run in found.runs]
    return replace(found, runs=tuple(runs))


def deliver_run(found: Measurement, form: str, output: str | None, options: RowOptions) -> None:
    """Write a run in a form, or in the notation boda."""
    stamp = not options["no_stamp"]
    if form in NOTATIONS_OF_RUNS:
        deliver(_boda(found, options["parts"], stamp), output, form)
        return
    view = {"sort": options["sort"], "top": options["top"], "stamp": stamp}
    deliver_result(found, form, output, view)


def _boda(found: Measurement, parts: str | None, stamp: bool) -> str:
    from msgspec.structs import replace

    from layerscope.conventions import convention
    from layerscope.export.footer import stamps
    from layerscope.export.run_lines import facts
    from layerscope.notations.boda import write

    counted = replace(found.report, convention=convention("boda"))
    texts = [write(counted, parts, run=run) for run in found.runs]
    below = [stamps(facts(found, found.report), "boda")] if stamp else []
    return "\n".join([*texts, *below])
