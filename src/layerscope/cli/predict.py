"""layerscope predict: what layers would take, on this machine or on one that is not here."""

from __future__ import annotations

import os
from typing import Any

import click

from layerscope.cli.network import (
    NETWORK,
    WHOLE_NUMBER,
    file_options,
    input_options,
    parse_shapes,
    reading,
)
from layerscope.cli.output import deliver, tell_of_caches, terminal
from layerscope.errors import UsageError

SUFFIXES = {".json": "json", ".csv": "csv", ".md": "markdown"}

EXAMPLES = """\b
Examples:
  layerscope machine --calibrate                    # once, some minutes
  layerscope predict resnet50
  layerscope predict resnet50 --on rtx4090 --batch 256 --sort --top 10
  layerscope predict vit_b_16 --on a100 --batch 64 --as json
  layerscope machine --list                         # machines by name
"""


@click.command(epilog=EXAMPLES)
@click.argument("network", metavar="NET", type=NETWORK)
@click.option("--on", metavar="MACHINE", help="A known machine.  [default: this one, calibrated]")
@input_options
@file_options
@click.option(
    "--threads", "-t", type=WHOLE_NUMBER, metavar="N", help="Of this machine.  [one a CPU]"
)
@click.option("--as", "form", metavar="FORM", help="text, markdown, csv, json.  [default: text]")
@click.option("--sort", is_flag=True, help="Longest first.")
@click.option("--top", type=WHOLE_NUMBER, metavar="N", help="Only the first N rows.")
@click.option("--output", "-o", metavar="FILE", help="Write to FILE; its suffix chooses the form.")
def command(network: str, form: str | None, output: str | None, **options: Any) -> None:
    """Predict the time of every layer of NET and of all of them, with an error band."""
    from layerscope.api import predict
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
    text = write(found, form, width=width, style=style, sort=options["sort"], top=options["top"])
    deliver(text, output, form)
    tell_of_caches()
