"""layerscope plot: plots of a network or of a measured run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from layerscope.cli.network import (
    NETWORK,
    NetworkOptions,
    analyze_options,
    file_options,
    input_options,
)
from layerscope.cli.output import chosen_form, deliver, deliver_bytes, form_options
from layerscope.errors import UnknownName, UsageError
from layerscope.plot import PLOTS

if TYPE_CHECKING:
    from layerscope.report import Report

FORMS = ("svg", "png")

EXAMPLES = """\b
Examples:
  layerscope plot resnet50 --of memory -o memory.svg
  layerscope measure resnet50 -o run.json
  layerscope plot run.json -o roofline.svg
  layerscope plot run.json --of time -o time.png
"""


@click.command(epilog=EXAMPLES)
@click.argument("network", metavar="NET|RUN", type=NETWORK)
@click.option(
    "--of",
    "what",
    metavar="WHAT",
    help=f"{', '.join(PLOTS)}.  [default: memory; roofline for a run]",
)
@input_options
@file_options
@form_options(FORMS)
def command(
    network: str,
    what: str | None,
    form: str | None,
    output: str | None,
    **options: Unpack[NetworkOptions],
) -> None:
    """Draw a roofline, the time per layer, or memory over the execution order."""
    from layerscope.api import analyze, need_operations
    from layerscope.formats import kind_of_json
    from layerscope.plot import png

    form = chosen_form(form, output, FORMS)
    if form == "png" and output in (None, "-"):
        raise UsageError("--as png is a binary format: give a file with -o FILE.png")
    kind = kind_of_json(network)
    if kind == "run":
        from layerscope.export.run_json import reading

        with reading(network):
            svg = _of_run(network, what or "roofline")
    else:
        if kind == "report":
            from layerscope.export.json import read_file

            report = read_file(network)
        else:
            report = analyze(network, **analyze_options(options))
        need_operations(report, "plot")
        svg = _of_network(report, what or "memory", network)
    if form == "png" and output is not None:
        deliver_bytes(png(svg), output)
    else:
        deliver(svg, output, form)


def _check(what: str) -> None:
    if what not in PLOTS:
        raise UnknownName("plot", what, PLOTS, f"; choose from {', '.join(PLOTS)}")


def _of_run(path: str, what: str) -> str:
    """A plot of a run in a file."""
    from layerscope.export.run_json import read_file
    from layerscope.plot import pictures

    _check(what)
    found = read_file(path)
    report = found.report
    if what == "roofline":
        return pictures.roofline(report, found.runs[0], found.machine)
    if what == "time":
        return pictures.time_bars(report, found.runs[0])
    return _of_network(report, what, path)


def _of_network(report: Report, what: str, network: str) -> str:
    """A plot that needs no run."""
    from layerscope.plot import pictures

    _check(what)
    if what in ("roofline", "time"):
        raise UsageError(
            f"--of {what} needs a measured run: layerscope measure {network} -o run.json"
        )
    draw = pictures.memory_steps if what == "memory" else pictures.activation_bars
    return draw(report)
