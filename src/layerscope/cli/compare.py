"""layerscope compare: networks side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

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
from layerscope.conventions import CONVENTIONS
from layerscope.errors import UnknownName

if TYPE_CHECKING:
    from layerscope.report.compare import Comparison

FORMS = ("text", "markdown", "json")

EXAMPLES = """\b
Examples:
  layerscope compare resnet50 resnet101
  layerscope compare vgg16 vgg19 resnet50 --batch 8 --dtype fp16
  layerscope compare vgg16 vgg19 --all --as markdown -o vgg.md
  layerscope compare alexnet alexnet-caffe --as json | jq '.pairs[0].counts'
"""


class CompareOptions(NetworkOptions):
    """Options of the command."""

    like: str
    everything: bool
    no_stamp: bool
    output: str | None


@click.command(epilog=EXAMPLES)
@click.argument("first", metavar="NET", type=NETWORK)
@click.argument("others", metavar="OTHER…", type=NETWORK, nargs=-1, required=True)
@click.option(
    "--as", "form", metavar="FORM", default="text", help=f"{', '.join(FORMS)}.  [default: text]"
)
@click.option(
    "--like",
    metavar="CONVENTION",
    default="exact",
    help=f"Count by the convention of another tool: {', '.join(CONVENTIONS)}.  [default: exact]",
)
@input_options
@file_options
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="List every layer, equal ones too, without folding repeats.",
)
@click.option("--no-stamp", is_flag=True, help="Leave out the stamps under the tables.")
@click.option("--output", "-o", metavar="FILE", help="Write to FILE.")
def command(
    first: str, others: tuple[str, ...], form: str, **options: Unpack[CompareOptions]
) -> None:
    """Print totals of NET and every OTHER with ratios to NET, and the layers that differ.

    Layers are matched by name, and where names differ by operation, shape and order.
    """
    from layerscope.api import compare
    from layerscope.export import comparison as export
    from layerscope.export.footer import stamps

    if form not in FORMS:
        raise UnknownName("form", form, FORMS, f"; choose from {', '.join(FORMS)}")
    found = compare(
        first,
        *others,
        input=parse_shapes(options["inputs"]),
        batch=options["batch"],
        dtype=options["dtype"],
        like=options["like"],
        **reading(options),
    )
    everything, stamp = options["everything"], not options["no_stamp"]
    output = options["output"]
    if form == "json":
        deliver(export.write_json(found, everything=everything, stamp=stamp), output, form)
        return
    width, style = terminal(bool(output))
    if form == "markdown":
        text = export.write_markdown(found, everything=everything)
    else:
        text = export.write_text(found, everything=everything, width=width, style=style)
    below = stamps(_stamps(found), form)
    below = wrapped(below, width) if width and form == "text" else below
    deliver(text + ("\n" + below if stamp else ""), output, form)


def _stamps(comparison: Comparison) -> list[str]:
    """The stamp of each network, and its coverage if it has unknown operators."""
    lines = []
    for report in comparison.reports:
        lines.append(report.stamp)
        if report.coverage.unknown:
            lines.append(str(report.coverage))
    return lines
