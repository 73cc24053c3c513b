"""layerscope report: one HTML page with the graph and the table of networks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Unpack

import click

from layerscope.cli.language import (
    RUNTIME,
    LanguageRequest,
    MemoryOptions,
    is_language_model,
    language_options,
    results,
)
from layerscope.cli.network import (
    MACHINES,
    NETWORK,
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
from layerscope.errors import InputError, UsageError
from layerscope.escaping import visible

if TYPE_CHECKING:
    from layerscope.export.page_types import PageData

FORMS = ("html", "json")
DEFAULT = "report.html"
LANGUAGE = ("runtime", "fit", "weight_dtype", "cache_dtype")

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
  layerscope report hf:config.json --decode 8192 --fit 24GB -o model.html

\b
The page is one file: it works from disk, without a network, and can be
attached to an issue. It has the figures of every convention.
"""


class PageOptions(MemoryOptions):
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
@language_options
@click.option(
    "--runtime",
    type=RUNTIME,
    metavar="PROGRAM",
    help="Language models: cache as llama.cpp, vllm, transformers or mlx allocates it.",
)
@click.option(
    "--fit",
    metavar="SIZE",
    help="Language models: longest context by batch in a memory, such as 24GB.",
)
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
    options["parallel"] = None  # the page shows one device
    _check_language(networks, options)
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
        _add_use(data, networks, options)
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


def _language_options(options: PageOptions) -> LanguageRequest:
    runtime = options["runtime"]
    if isinstance(runtime, float):
        raise UsageError(f"--runtime {runtime:g}, expected the name of a program")
    return {
        "program": runtime or "",
        "weights": options["weight_dtype"],
        "cache": options["cache_dtype"],
    }


def _check_language(networks: tuple[str, ...], options: PageOptions) -> None:
    """Raise for options of language models where no network is one."""
    given = [name for name in LANGUAGE if options[name] is not None]  # type: ignore[literal-required]
    if given and not any(map(is_language_model, networks)):
        option = "--" + given[0].replace("_", "-")
        raise UsageError(f"{option} needs a language model, as hf:config.json")
    _language_options(options)


def _add_use(data: PageData, networks: tuple[str, ...], options: PageOptions) -> None:
    """Add cache, memory and fit to the entries of language models."""
    from layerscope.export.page_language import page_use
    from layerscope.export.page_types import PageReport

    request = _language_options(options)
    for network, entry in zip(networks, data.reports, strict=True):
        if isinstance(entry, PageReport) and is_language_model(network):
            entry.use = page_use(results(network, request, options))
