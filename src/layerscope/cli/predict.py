"""layerscope predict: predict the time of layers on this machine or another one."""

from __future__ import annotations

from typing import Unpack

import click

from layerscope.cli.network import (
    MACHINES,
    NETWORK,
    WHOLE_NUMBER,
    NetworkOptions,
    analyze_options,
    file_options,
    input_options,
)
from layerscope.cli.output import (
    RESULT_FORMS,
    chosen_form,
    deliver_result,
    form_options,
    report_cache_problems,
)
from layerscope.errors import UsageError

EXAMPLES = """\b
Examples:
  layerscope machine --calibrate                    # once, some minutes
  layerscope predict resnet50
  layerscope predict resnet50 --on rtx4090 --batch 256 --sort --top 10
  layerscope predict vit_b_16 --on a100 --batch 64 -o prediction.json
  layerscope machine --list                         # names of machines
"""


class PredictOptions(NetworkOptions):
    """Options of the command."""

    on: str | None
    threads: int | None
    sort: bool
    top: int | None
    no_stamp: bool


@click.command(epilog=EXAMPLES)
@click.argument("network", metavar="NET", type=NETWORK)
@click.option(
    "--on",
    metavar="MACHINE",
    shell_complete=MACHINES,
    help="Name of a machine, see `machine --list`.  [default: this one]",
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
@form_options(RESULT_FORMS)
@click.option("--sort", is_flag=True, help="Sort by time, longest first.")
@click.option("--top", type=WHOLE_NUMBER, metavar="N", help="Print only the first N rows.")
@click.option("--no-stamp", is_flag=True, help="Leave out the last line, on machine and model.")
def command(
    network: str, form: str | None, output: str | None, **options: Unpack[PredictOptions]
) -> None:
    """Predict the time of NET and of each of its layers, with an error interval."""
    from layerscope.api.timing import predict

    form = chosen_form(form, output, RESULT_FORMS)
    if options["top"] is not None and options["top"] < 1:
        raise UsageError(f"--top {options['top']}, expected at least 1")
    found = predict(
        network, on=options["on"], threads=options["threads"], **analyze_options(options)
    )
    view = {"sort": options["sort"], "top": options["top"], "stamp": not options["no_stamp"]}
    deliver_result(found, form, output, view)
    report_cache_problems()
