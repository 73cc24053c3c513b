"""layerscope predict: predict the time of layers on this machine or another one."""

from __future__ import annotations

import os
from typing import Unpack

import click

from layerscope.cli.network import (
    NETWORK,
    WHOLE_NUMBER,
    NetworkOptions,
    file_options,
    input_options,
    parse_shapes,
    reading,
)
from layerscope.cli.output import deliver, report_cache_problems, terminal
from layerscope.errors import UsageError

SUFFIXES = {".json": "json", ".csv": "csv", ".md": "markdown"}

EXAMPLES = """\b
Examples:
  layerscope machine --calibrate                    # once, some minutes
  layerscope predict resnet50
  layerscope predict resnet50 --on rtx4090 --batch 256 --sort --top 10
  layerscope predict vit_b_16 --on a100 --batch 64 --as json
  layerscope machine --list                         # names of machines
"""


class PredictOptions(NetworkOptions):
    """Options of the command."""

    on: str | None
    threads: int | None
    sort: bool
    top: int | None


@click.command(epilog=EXAMPLES)
@click.argument("network", metavar="NET", type=NETWORK)
@click.option(
    "--on", metavar="MACHINE", help="Name of a machine, see `machine --list`.  [default: this one]"
)
@input_options
@file_options
@click.option(
    "--threads",
    "-t",
    type=WHOLE_NUMBER,
    metavar="N",
    help="Threads on this machine.  [default: number of CPUs]",
)
@click.option("--as", "form", metavar="FORM", help="text, markdown, csv, json.  [default: text]")
@click.option("--sort", is_flag=True, help="Sort by time, longest first.")
@click.option("--top", type=WHOLE_NUMBER, metavar="N", help="Print only the first N rows.")
@click.option("--output", "-o", metavar="FILE", help="Write to FILE; its suffix chooses the form.")
def command(
    network: str, form: str | None, output: str | None, **options: Unpack[PredictOptions]
) -> None:
    """Predict the time of NET and of each of its layers, with an error interval."""
    from layerscope.api import predict
    from layerscope.export.grid import TimeView
    from layerscope.export.predicted import write

    if options["top"] is not None and options["top"] < 1:
        raise UsageError(f"--top {options['top']}, expected at least 1")
    found = predict(
        network,
        on=options["on"],
        threads=options["threads"],
        input=parse_shapes(options["inputs"]),
        batch=options["batch"],
        dtype=options["dtype"],
        **reading(options),
    )
    form = form or SUFFIXES.get(os.path.splitext(output or "")[1].lower(), "text")
    width, style = terminal(bool(output))
    view = TimeView(width, style, options["sort"], options["top"])
    text = write(found, form, view)
    deliver(text, output, form)
    report_cache_problems()
