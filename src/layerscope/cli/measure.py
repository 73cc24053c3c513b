"""layerscope measure: time every layer on an engine; `show run.json` prints the run again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypedDict, Unpack

import click
from msgspec.structs import replace

from layerscope.cli.network import (
    NETWORK,
    REAL_NUMBER,
    WHOLE_NUMBER,
    NetworkOptions,
    file_options,
    input_options,
    parse_shapes,
    reading,
)
from layerscope.cli.output import (
    deliver,
    progress_bar,
    report_cache_problems,
    terminal,
    wrapped,
)
from layerscope.errors import LayerscopeError, UnknownName, UsageError
from layerscope.export.text import plain
from layerscope.report.quantities import watts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layerscope.report import Report
    from layerscope.report.measurement import Measurement

SUFFIXES = {".json": "json", ".csv": "csv", ".md": "markdown", ".txt": "text"}
FORMS = ("text", "markdown", "csv", "json", "boda")

EXAMPLES = """\b
Examples:
  layerscope measure resnet50
  layerscope measure nin-nopad --batch 5 --power 45 --as boda
  layerscope measure vgg16 --sort --top 10 -o vgg16.json
  layerscope measure mobilenet_v2 --fusion both
  layerscope measure resnet18 --engine all --threads 1
  layerscope show vgg16.json --as boda --parts layers,profile

\b
Times are those of the run with the median end-to-end time, so the rows add up to it.
The roofline columns need `layerscope machine` to have been run once.
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
    help="Timed runs after 3 warm-up runs.  [default: 10]",
)
@click.option(
    "--fusion",
    default="on",
    metavar="HOW",
    help="Layer fusion of the engine: on, off or both.  [default: on]",
)
@click.option(
    "--power", type=REAL_NUMBER, metavar="W", help="Power in watts, for the energy of a run."
)
@click.option("--as", "form", metavar="FORM", help=f"{', '.join(FORMS)}.  [default: text]")
@click.option(
    "--parts",
    metavar="A,B,…",
    help="Parts of boda: layers, info, totals, backward, profile, timers.  "
    "[default: all but backward]",
)
@click.option("--sort", is_flag=True, help="Sort by time, longest first.")
@click.option("--top", type=WHOLE_NUMBER, metavar="N", help="Print only the first N rows.")
@click.option("--no-stamp", is_flag=True, help="Leave out the stamp and notes under the table.")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="Write the run to FILE if it ends in .json, else the table.",
)
def command(
    network: str, form: str | None, output: str | None, **options: Unpack[MeasureCommandOptions]
) -> None:
    """Time every layer of NET on an engine, with layout changes and unattributed time as rows."""
    from layerscope.api import measure_with_report
    from layerscope.engines.measuring import MeasureRequest

    if form is not None and form not in FORMS:
        raise UnknownName("form", form, FORMS, f"; choose from {', '.join(FORMS)}")
    check_rows(form, options)
    show = progress_bar()
    try:
        report, found = measure_with_report(
            network,
            MeasureRequest(
                options["engine"],
                options["threads"],
                options["runs"],
                options["fusion"],
                options["power"],
            ),
            show,
            input=parse_shapes(options["inputs"]),
            batch=options["batch"],
            dtype=options["dtype"],
            **reading(options),
        )
    finally:
        show("", 1, 1)
    writes_run = output is not None and os.path.splitext(output)[1].lower() == ".json"
    if writes_run and form in (None, "json"):
        deliver(render_run(found, report, "json", options, to_file=True), output, "json")
        if form is None:
            deliver(render_run(found, report, "text", options, to_file=False), None)
    elif writes_run:
        deliver(render_run(found, report, "json", options, to_file=True), output, "json")
        shown = form or "text"
        deliver(render_run(found, report, shown, options, to_file=False), None, shown)
    else:
        form = form or SUFFIXES.get(os.path.splitext(output or "")[1].lower(), "text")
        deliver(render_run(found, report, form, options, to_file=bool(output)), output, form)
    report_cache_problems()
    _raise_failure(found)


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
    from layerscope.api import analyze
    from layerscope.export.run_json import read_file
    from layerscope.export.run_json import reading as reading_run
    from layerscope.graph.serialize import from_plain

    for name, value in options.items():
        if value not in (None, False, ()) and name not in SHOW_OPTIONS:
            option = {"inputs": "input", "dims": "dim", "everything": "all"}.get(name, name)
            raise UsageError(
                f"--{option.replace('_', '-')} does not apply to a measured run: {path}"
            )
    found = read_file(path)
    form = form or SUFFIXES.get(os.path.splitext(output or "")[1].lower(), "text")
    if form not in FORMS:
        raise UnknownName("form", form, FORMS, f"; choose from {', '.join(FORMS)}")
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
    with reading_run(path):
        report = analyze(from_plain(found.graph))
        if isinstance(power := options["power"], float):
            found = _at_power(found, watts(power, "--power"))
        text = render_run(found, report, form, rows, to_file=bool(output))
    deliver(text, output, form)


def _at_power(found: Measurement, power_w: float) -> Measurement:
    """The measurement with the energy of each run at that power."""
    from layerscope.report.given_run import Given

    given = Given(power_w=power_w)
    runs = [replace(run, energy=given.energy(run.timing.end_to_end_s)) for run in found.runs]
    return replace(found, runs=tuple(runs))


def render_run(
    found: Measurement, report: Report, form: str, options: RowOptions, *, to_file: bool
) -> str:
    """A measurement in one of FORMS."""
    from layerscope.export.footer import COMMENTS, escape_for, stamps
    from layerscope.export.grid import TimeView
    from layerscope.export.measured import write
    from layerscope.export.run_lines import facts

    stamp = not options["no_stamp"]
    if form == "boda":
        from layerscope.conventions import convention
        from layerscope.notations.boda import write as write_boda

        counted = replace(report, convention=convention("boda"))
        texts = [write_boda(counted, options["parts"], run=run) for run in found.runs]
        below = [stamps(facts(found, report), form)] if stamp else []
        return "\n".join([*texts, *below])

    width, style = terminal(to_file) if form == "text" else (None, plain)
    view = TimeView(width, style, options["sort"], options["top"], stamp)
    text = write(found, report, form, view)
    if form == "csv" and stamp:
        escape = escape_for(form)
        return text + "".join(f"{COMMENTS[form]}{escape(x)}\n" for x in facts(found, report))
    if form == "json":
        return text
    if view.width:
        head, _, rest = text.partition("\n\n")
        return f"{head}\n\n" + wrapped_lines(rest, view.width)
    return text


def wrapped_lines(text: str, width: int) -> str:
    """Notes under a table, wrapped at `width`; further tables are left as they are."""
    lines = []
    for line in text.splitlines():
        sentence = "  " not in line and len(line) > width
        lines.append(wrapped(line, width).rstrip("\n") if sentence else line)
    return "\n".join(lines) + "\n"
