"""layerscope measure: every layer timed on an engine; also prints runs that were kept."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from layerscope.cli.network import (
    NETWORK,
    REAL_NUMBER,
    WHOLE_NUMBER,
    file_options,
    input_options,
    parse_shapes,
    reading,
)
from layerscope.cli.output import deliver, tell_of_caches, terminal, wrapped
from layerscope.errors import LayerscopeError, UnknownName, UsageError

if TYPE_CHECKING:
    from layerscope.report import Report
    from layerscope.report.measurement import Measurement

SUFFIXES = {".json": "json", ".csv": "csv", ".md": "markdown", ".txt": "text"}
KNOWN = ("text", "markdown", "csv", "json", "boda")

EXAMPLES = """\b
Examples:
  layerscope measure resnet50
  layerscope measure nin-nopad --batch 5 --power 45 --as boda
  layerscope measure vgg16 --sort --top 10 -o vgg16.json
  layerscope measure mobilenet_v2 --fusion both
  layerscope measure resnet18 --engine all --threads 1
  layerscope show vgg16.json --as boda --parts layers,profile

\b
Times are those of the run whose end-to-end time is the median, so that rows add up to it.
Roofs are shown once `layerscope machine` has measured them.
"""


AGAIN = ("parts", "top", "sort", "no_stamp", "strict")  # options of show that a kept run takes


class Interrupted(LayerscopeError):
    """Ctrl-C, after what there was has been printed."""

    exit_code = 130


@click.command(epilog=EXAMPLES)
@click.argument("network", metavar="NET", type=NETWORK)
@click.option(
    "--engine",
    default="onnxruntime",
    metavar="ENGINE",
    help="onnxruntime, openvino, torch, several with commas, or all.  [default: onnxruntime]",
)
@input_options
@file_options
@click.option(
    "--threads", "-t", type=WHOLE_NUMBER, metavar="N", help="Threads.  [default: one a CPU]"
)
@click.option(
    "--runs", type=WHOLE_NUMBER, default=10, metavar="N", help="Runs after 3 warm-ups.  [10]"
)
@click.option("--fusion", default="on", metavar="HOW", help="on, off or both.  [default: on]")
@click.option(
    "--power", type=REAL_NUMBER, metavar="W", help="Watts to assume for the energy of a run."
)
@click.option("--as", "form", metavar="FORM", help=f"{', '.join(KNOWN)}.  [default: text]")
@click.option(
    "--parts", metavar="A,B,…", help="Of boda: layers, info, totals, profile, timers.  [all]"
)
@click.option("--sort", is_flag=True, help="Longest first.")
@click.option("--top", type=WHOLE_NUMBER, metavar="N", help="Only the first N rows.")
@click.option(
    "--output", "-o", metavar="FILE", help="Keep the run in FILE (.json), or write the table."
)
def command(network: str, form: str | None, output: str | None, **options: Any) -> None:
    """Time every layer of NET on an engine: source layers, layout changes, the rest as a row."""
    from layerscope.api import measure_with_report
    from layerscope.cli.progress import bar
    from layerscope.engines.measuring import MeasureRequest

    if form is not None and form not in KNOWN:
        raise UnknownName("form", form, KNOWN, f"; known: {', '.join(KNOWN)}")
    _check(form, options)
    show = bar()
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
    to_keep = output is not None and os.path.splitext(output)[1].lower() == ".json"
    if to_keep and form in (None, "json"):
        deliver(_render(found, report, "json", options, to_file=True), output, "json")
        if form is None:
            deliver(_render(found, report, "text", options, to_file=False), None)
    elif to_keep:
        deliver(_render(found, report, "json", options, to_file=True), output, "json")
        deliver(
            _render(found, report, form or "text", options, to_file=False), None, form or "text"
        )
    else:
        form = form or SUFFIXES.get(os.path.splitext(output or "")[1].lower(), "text")
        deliver(_render(found, report, form, options, to_file=bool(output)), output, form)
    tell_of_caches()
    _leave(found)


def _check(form: str | None, options: dict[str, Any]) -> None:
    if options.get("parts") is not None and form != "boda":
        raise UsageError("--parts goes with --as boda only")
    if options.get("top") is not None and options["top"] < 1:
        raise UsageError(f"--top {options['top']}, expected at least 1")


def _leave(found: Measurement) -> None:
    """Raise what ended a run early, after everything there was has been printed."""
    for run in found.runs:
        if run.code == 130:
            raise Interrupted(f"{run.engine}: {run.notes[0] if run.notes else 'interrupted'}")
        if run.code:
            raise LayerscopeError(f"{run.engine}: {run.notes[0]}")


def kept(path: str) -> Measurement:
    """The measurement in a file."""
    from layerscope.export.run_json import read_file

    return read_file(path)


def show_again(path: str, form: str | None, output: str | None, options: dict[str, Any]) -> None:
    """Print a run that was kept in a file."""
    for name, value in options.items():
        if value not in (None, False, ()) and name not in AGAIN:
            option = {"inputs": "input", "dims": "dim", "everything": "all"}.get(name, name)
            raise UsageError(f"--{option.replace('_', '-')} does not go with a kept run: {path}")
    found = kept(path)
    form = form or SUFFIXES.get(os.path.splitext(output or "")[1].lower(), "text")
    if form not in KNOWN:
        raise UnknownName("form", form, KNOWN, f"; of a run known: {', '.join(KNOWN)}")
    told = {
        "parts": options.get("parts"),
        "top": options.get("top"),
        "sort": options.get("sort") is not None,
    }
    _check(form, told)
    if options.get("sort") not in (None, "time"):
        raise UsageError(f"--sort {options['sort']}: rows of a run are sorted by time")
    from layerscope.api import analyze
    from layerscope.export.run_json import reading
    from layerscope.graph.serialize import from_plain

    with reading(path):
        report = analyze(from_plain(found.graph))
        text = _render(found, report, form, told, to_file=bool(output))
    deliver(text, output, form)


def _render(
    found: Measurement, report: Report, form: str, options: dict[str, Any], *, to_file: bool
) -> str:
    if form == "boda":
        from layerscope.conventions import convention
        from layerscope.notations.boda import write as write_boda

        counted = replace(report, convention=convention("boda"))
        texts = [write_boda(counted, options.get("parts"), run=run) for run in found.runs]
        return "\n".join(texts)
    from layerscope.export.measured import write

    width, style = terminal(to_file) if form == "text" else (None, None)
    styled = {} if style is None else {"style": style}
    text = write(
        found,
        report,
        form,
        width=width,
        sort=bool(options.get("sort")),
        top=options.get("top"),
        **styled,
    )
    if form == "json":
        return text
    if form == "text" and width:
        head, _, rest = text.partition("\n\n")
        return f"{head}\n\n" + wrapped_lines(rest, width)
    return text


def wrapped_lines(text: str, width: int) -> str:
    """Remarks under a table, broken where they are long; further tables as they are."""
    lines = []
    for line in text.splitlines():
        sentence = "  " not in line and len(line) > width
        lines.append(wrapped(line, width).rstrip("\n") if sentence else line)
    return "\n".join(lines) + "\n"
