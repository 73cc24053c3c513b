"""layerscope report: one HTML page with the graph and the table of networks."""

from __future__ import annotations

import os
from typing import Unpack

import click

from layerscope.cli.network import (
    MACHINES,
    NETWORK,
    NetworkOptions,
    analyze_options,
    file_options,
    input_options,
)
from layerscope.cli.output import (
    chosen_form,
    deliver_page,
    form_options,
    progress_bar,
    report_cache_problems,
)
from layerscope.errors import InputError
from layerscope.escaping import visible

FORMS = ("html", "json")
DEFAULT = "report.html"

EXAMPLES = """\b
Examples:
  layerscope report resnet50
  layerscope report model.onnx -o model.html
  layerscope report torchvision:resnet50 --batch 8 -o resnet50.html
  layerscope report resnet50 resnet101 -o both.html     # side by side
  layerscope report resnet50 --on a100 --dtype fp16
  layerscope measure resnet50 -o run.json
  layerscope report run.json                            # with its times
  layerscope report before.json after.json -o change.html
  layerscope report resnet50 --as json -o data.json     # data of the page

\b
The page is one file: it works from disk, without a network, and can be
attached to an issue. It has the figures of every convention.
"""


class PageOptions(NetworkOptions):
    """Options of the command."""

    on: str | None


@click.command(epilog=EXAMPLES)
@click.argument("networks", metavar="NET…", type=NETWORK, nargs=-1, required=True)
@click.option(
    "--on",
    metavar="MACHINE",
    shell_complete=MACHINES,
    help="Predict times for a machine, see `machine --list`, and draw its roofline; `this` for a "
    "calibrated one.",
)
@form_options(FORMS)
@input_options
@file_options
def command(
    networks: tuple[str, ...],
    form: str | None,
    output: str | None,
    **options: Unpack[PageOptions],
) -> None:
    """Write one HTML page with the graph, the table and charts of every NET.

    A NET may also be a run of `measure`, a prediction or a report that was written with
    -o FILE.json. Without -o the page is written to report.html. A file of several that cannot be
    read is an entry of the page with its error, and the exit code is 3.
    """
    from layerscope.api.reporting import page_data
    from layerscope.export.page_file import built_page, data_text, write

    form = chosen_form(form, output, FORMS)
    if form == "html":
        built_page()  # raises before a network is read
    show = progress_bar()
    refused: list[InputError] = []
    try:
        data = page_data(
            networks,
            on=options["on"],
            progress=show,
            refused=refused if len(networks) > 1 else None,
            **analyze_options(options),
        )
    finally:
        show("", 1, 1)
    text = write(data) if form == "html" else data_text(data) + "\n"
    path = DEFAULT if output is None and form == "html" else output
    deliver_page(text, path)
    if output is None and path is not None:
        click.echo(f"layerscope: wrote {path}, {os.path.getsize(path):,} bytes", err=True)
    report_cache_problems()
    for error in refused[:-1]:
        click.echo(f"layerscope: {visible(error.line)}", err=True)
    if refused:
        raise refused[-1]
