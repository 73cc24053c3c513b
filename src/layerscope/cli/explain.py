"""layerscope explain: what other counters print for a network, and why."""

from __future__ import annotations

from typing import Unpack

import click

from layerscope.cli.network import (
    NETWORK,
    NetworkOptions,
    file_options,
    input_options,
    parse_shapes,
    reading,
)
from layerscope.cli.output import deliver, terminal, wrapped
from layerscope.conventions import COUNTERS
from layerscope.errors import UnknownName

FORMS = ("text", "markdown", "json")

EXAMPLES = """\b
Examples:
  layerscope explain resnet50
  layerscope explain resnet50 --figure 4.11G
  layerscope explain resnet50 --figure "8.2 GFLOPs"
  layerscope explain vit-b-16 --like thop --like torchinfo
  layerscope explain model.onnx --as json | jq '.counters[].macs'
"""


class ExplainOptions(NetworkOptions):
    """Options of the command."""

    names: tuple[str, ...]
    no_stamp: bool
    output: str | None


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
    help=f"Counters to show: {', '.join(COUNTERS)}.  [default: all]",
)
@click.option(
    "--as", "form", metavar="FORM", default="text", help=f"{', '.join(FORMS)}.  [default: text]"
)
@input_options
@file_options
@click.option("--no-stamp", is_flag=True, help="Leave out the stamp and notes under the table.")
@click.option("--output", "-o", metavar="FILE", help="Write to FILE.")
def command(network: str, figure: str | None, form: str, **options: Unpack[ExplainOptions]) -> None:
    """Print what other counters report for NET, and the reasons for each difference.

    The reasons of a counter add up to its difference to the exact multiply-adds.
    """
    from layerscope.api import explain
    from layerscope.export import explanation as export
    from layerscope.export.footer import stamps

    if form not in FORMS:
        raise UnknownName("form", form, FORMS, f"; choose from {', '.join(FORMS)}")
    names = options["names"] or COUNTERS
    for name in names:
        if name not in COUNTERS:
            raise UnknownName("counter", name, COUNTERS, f"; choose from {', '.join(COUNTERS)}")
    found = explain(
        network,
        figure=figure,
        counters=tuple(names),
        input=parse_shapes(options["inputs"]),
        batch=options["batch"],
        dtype=options["dtype"],
        **reading(options),
    )
    stamp, output = not options["no_stamp"], options["output"]
    if form == "json":
        deliver(export.write_json(found, stamp=stamp), output, form)
        return
    width, style = terminal(bool(output))
    lines = (found.report.stamp, *found.notes)
    if form == "markdown":
        text = export.write_markdown(found)
    else:
        text = export.write_text(found, width=width, style=style)
    below = stamps(lines, form)
    below = wrapped(below, width) if width and form == "text" else below
    deliver(text + ("\n" + below if stamp else ""), output, form)
