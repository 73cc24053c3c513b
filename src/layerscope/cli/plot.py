"""layerscope plot: plots of a network or of a measured run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Unpack

import click

from layerscope.cli.network import (
    NETWORK,
    NetworkOptions,
    file_options,
    input_options,
    parse_shapes,
)
from layerscope.cli.network import reading as options_of_reader
from layerscope.cli.output import deliver, deliver_bytes
from layerscope.errors import UnknownName, UsageError
from layerscope.plot import PLOTS

if TYPE_CHECKING:
    from layerscope.report import Report

EXAMPLES = """\b
Examples:
  layerscope plot resnet50 --of memory -o memory.svg
  layerscope measure resnet50 -o run.json && layerscope plot run.json -o roofline.svg
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
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="Write .svg or .png; without it SVG goes to standard output.",
)
def command(
    network: str, what: str | None, output: str | None, **options: Unpack[NetworkOptions]
) -> None:
    """Draw a roofline, the time per layer, or memory over the execution order."""
    from layerscope.api import analyze, need_operations
    from layerscope.formats import is_run
    from layerscope.plot import png

    if is_run(network):
        from layerscope.export.run_json import reading

        with reading(network):
            svg = _of_run(network, what or "roofline")
    else:
        report = analyze(
            network,
            input=parse_shapes(options["inputs"]),
            batch=options["batch"],
            dtype=options["dtype"],
            **options_of_reader(options),
        )
        need_operations(report, "plot")
        svg = _of_network(report, what or "memory", network)
    suffix = os.path.splitext(output or "")[1].lower()
    if output is None or suffix in (".svg", ""):
        deliver(svg, output, "svg")
    elif suffix == ".png":
        deliver_bytes(png(svg), output)
    else:
        raise UsageError(f"-o {output}: expected .svg or .png")


def _check(what: str) -> None:
    if what not in PLOTS:
        raise UnknownName("plot", what, PLOTS, f"; choose from {', '.join(PLOTS)}")


def _of_run(path: str, what: str) -> str:
    """A plot of a run in a file."""
    from layerscope.api import analyze
    from layerscope.export.run_json import read_file
    from layerscope.graph.serialize import from_plain
    from layerscope.plot import pictures

    _check(what)
    found = read_file(path)
    report = analyze(from_plain(found.graph))
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
