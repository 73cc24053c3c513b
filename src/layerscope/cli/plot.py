"""layerscope plot: pictures of a network or of a run."""

from __future__ import annotations

import os
from typing import Any

import click

from layerscope.cli.network import NETWORK, file_options, input_options, parse_shapes, reading
from layerscope.cli.output import deliver, deliver_bytes
from layerscope.errors import UnknownName, UsageError
from layerscope.plot import PLOTS

EXAMPLES = """\b
Examples:
  layerscope plot resnet50 --of memory -o memory.svg
  layerscope measure resnet50 -o run.json && layerscope plot run.json -o roofline.svg
  layerscope plot run.json --of time -o time.png
"""


@click.command(epilog=EXAMPLES)
@click.argument("network", metavar="NET|RUN", type=NETWORK)
@click.option("--of", "what", metavar="WHAT", help=f"{', '.join(PLOTS)}.  [roofline, memory]")
@input_options
@file_options
@click.option("--output", "-o", metavar="FILE", help=".svg or .png; without it SVG is printed.")
def command(network: str, what: str | None, output: str | None, **options: Any) -> None:
    """Draw a roofline, the time of layers, or memory over the order of execution."""
    from layerscope.api import analyze, need_operations
    from layerscope.formats import is_run
    from layerscope.plot import pictures, png

    run = machine = None
    if is_run(network):
        from layerscope.cli.measure import kept
        from layerscope.graph.plain import from_plain

        found = kept(network)
        run, machine = found.runs[0], found.machine
        report = analyze(from_plain(found.graph))
    else:
        report = analyze(
            network,
            input=parse_shapes(options["inputs"]),
            batch=options["batch"],
            dtype=options["dtype"],
            **reading(options),
        )
        need_operations(report, "plot")
    what = what or ("roofline" if run is not None else "memory")
    if what not in PLOTS:
        raise UnknownName("plot", what, PLOTS, f"; known: {', '.join(PLOTS)}")
    if what in ("roofline", "time"):
        if run is None:
            raise UsageError(f"--of {what} is of a run: layerscope measure {network} -o run.json")
        svg = (
            pictures.roofline(report, run, machine)
            if what == "roofline"
            else pictures.time_bars(report, run)
        )
    else:
        draw = pictures.memory_steps if what == "memory" else pictures.activation_bars
        svg = draw(report)
    suffix = os.path.splitext(output or "")[1].lower()
    if output is None or suffix in (".svg", ""):
        deliver(svg, output, "svg")
    elif suffix == ".png":
        deliver_bytes(png(svg), output)
    else:
        raise UsageError(f"-o {output}: expected a name that ends in .svg or .png")
