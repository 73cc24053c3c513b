"""layerscope explain: what other counters print for a network, and why."""

from __future__ import annotations

from typing import Unpack

import click

from layerscope.cli.network import (
    NETWORK,
    NetworkOptions,
    analyze_options,
    file_options,
    input_options,
    names_in,
)
from layerscope.cli.output import RESULT_FORMS, chosen_form, deliver_result, form_options
from layerscope.conventions import COUNTERS
from layerscope.errors import UnknownName

EXAMPLES = """\b
Examples:
  layerscope explain resnet50
  layerscope explain resnet50 --figure 4.11G
  layerscope explain resnet50 --figure "8.2 GFLOPs"
  layerscope explain vit-b-16 --like thop --like torchinfo
  layerscope explain resnet50 -o counters.md
  layerscope explain model.onnx --json | jq '.counters[].macs'
"""


class ExplainOptions(NetworkOptions):
    """Options of the command."""

    names: tuple[str, ...]
    figure: str | None
    no_stamp: bool


@click.command(epilog=EXAMPLES)
@click.argument("network", metavar="NET", type=NETWORK)
@click.option(
    "--figure",
    metavar="FIGURE",
    help="A published figure, such as 4.11G or 25.6M: print which counters give it.",
)
@click.option(
    "--like",
    "names",
    multiple=True,
    metavar="COUNTER",
    shell_complete=names_in("conventions:COUNTERS"),
    help=f"Counters to show: {', '.join(COUNTERS)}.  [default: all]",
)
@form_options(RESULT_FORMS)
@input_options
@file_options
@click.option("--no-stamp", is_flag=True, help="Leave out the stamp and notes under the table.")
def command(
    network: str, form: str | None, output: str | None, **options: Unpack[ExplainOptions]
) -> None:
    """Print what other counters report for NET, and the reasons for each difference.

    The reasons of a counter add up to its difference to the exact multiply-adds.
    """
    from layerscope.api.explaining import explain

    form = chosen_form(form, output, RESULT_FORMS)
    names = options["names"] or COUNTERS
    for name in names:
        if name not in COUNTERS:
            raise UnknownName("counter", name, COUNTERS, f"; choose from {', '.join(COUNTERS)}")
    found = explain(
        network, figure=options["figure"], counters=tuple(names), **analyze_options(options)
    )
    stamp = not options["no_stamp"]
    deliver_result(found, form, output, {"stamp": stamp}, stamp=stamp)
