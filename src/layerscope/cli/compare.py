"""layerscope compare: networks side by side."""

from __future__ import annotations

from typing import Any

import click

from layerscope.cli.network import NETWORK, file_options, input_options, parse_shapes, reading
from layerscope.cli.output import deliver, terminal, wrapped
from layerscope.conventions import CONVENTIONS
from layerscope.errors import UnknownName

FORMS = ("text", "markdown", "json")

EXAMPLES = """\b
Examples:
  layerscope compare resnet50 resnet101
  layerscope compare vgg16 vgg19 resnet50 --batch 8 --dtype fp16
  layerscope compare vgg16 vgg19 --all --as markdown -o vgg.md
  layerscope compare alexnet alexnet-caffe --as json | jq '.pairs[0].counts'
"""


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
    help=f"Count as another system does: {', '.join(CONVENTIONS)}.  [default: exact]",
)
@input_options
@file_options
@click.option("--all", "everything", is_flag=True, help="List equal layers too, and fold none.")
@click.option("--no-stamp", is_flag=True, help="Leave out the stamps under the tables.")
@click.option("--output", "-o", metavar="FILE", help="Write to FILE.")
def command(first: str, others: tuple[str, ...], form: str, **options: Any) -> None:
    """Print totals of NET and every OTHER with ratios to NET, and the layers that differ.

    Layers are the same one by name or, where names say nothing, by what they do in which order.
    """
    from layerscope.api import compare
    from layerscope.export import comparison as export
    from layerscope.export.footer import stamps

    if form not in FORMS:
        raise UnknownName("form", form, FORMS, f"; known: {', '.join(FORMS)}")
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


def _stamps(comparison: Any) -> list[str]:
    """A stamp a network, and the coverage of those that are not wholly known."""
    lines = []
    for report in comparison.reports:
        lines.append(report.stamp)
        if report.coverage.unknown:
            lines.append(str(report.coverage))
    return lines
