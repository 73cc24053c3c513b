"""layerscope explain: what other counters would say, and why."""

from __future__ import annotations

from typing import Any

import click

from layerscope.cli.network import NETWORK, file_options, input_options, parse_shapes, reading
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


@click.command(epilog=EXAMPLES)
@click.argument("network", metavar="NET", type=NETWORK)
@click.option(
    "--figure", metavar="FIGURE", help="Which ways of counting give a published 4.11G or 25.6M."
)
@click.option(
    "--like",
    "names",
    multiple=True,
    metavar="COUNTER",
    help=f"Only some: {', '.join(COUNTERS)}.  [default: all]",
)
@click.option(
    "--as", "form", metavar="FORM", default="text", help=f"{', '.join(FORMS)}.  [default: text]"
)
@input_options
@file_options
@click.option("--no-stamp", is_flag=True, help="Leave out the stamp and notes under the table.")
@click.option("--output", "-o", metavar="FILE", help="Write to FILE.")
def command(network: str, figure: str | None, form: str, **options: Any) -> None:
    """Print what other counters would say of NET, and how much each reason makes of a difference.

    Reasons of a counter add up to the difference between its multiply-adds and ours.
    """
    from layerscope.api import explain
    from layerscope.export import explanation as export
    from layerscope.export.footer import stamps

    if form not in FORMS:
        raise UnknownName("form", form, FORMS, f"; known: {', '.join(FORMS)}")
    names = options["names"] or COUNTERS
    for name in names:
        if name not in COUNTERS:
            raise UnknownName("counter", name, COUNTERS, f"; known: {', '.join(COUNTERS)}")
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
