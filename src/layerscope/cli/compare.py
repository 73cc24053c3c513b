"""layerscope compare: networks side by side."""

from __future__ import annotations

from typing import Unpack

import click

from layerscope.cli.network import (
    CONVENTION_NAMES,
    MACHINES,
    NETWORK,
    NetworkOptions,
    analyze_options,
    file_options,
    input_options,
    names_in,
)
from layerscope.cli.output import (
    RESULT_FORMS,
    chosen_form,
    deliver_result,
    form_options,
    progress_bar,
    report_cache_problems,
)
from layerscope.conventions import CONVENTIONS
from layerscope.errors import UsageError

EXAMPLES = """\b
Examples:
  layerscope compare resnet50 resnet101
  layerscope compare vgg16 vgg19 resnet50 --batch 8 --dtype fp16
  layerscope compare vgg16 vgg19 --all -o vgg.md
  layerscope compare vgg16 resnet50 vgg19 --columns name,macs --sort macs
  layerscope compare resnet18 resnet50 --measure --sort time -o times.tex
  layerscope compare resnet18 resnet50 --on a100 --sort time
  layerscope compare before.json after.json        # runs of measure
  layerscope compare alexnet alexnet-caffe --json | jq '.pairs[0].counts'
"""


class CompareOptions(NetworkOptions):
    """Options of the command."""

    like: str | None
    measure: bool
    on: str | None
    columns: str | None
    sort: str | None
    layers: bool
    everything: bool
    no_stamp: bool


@click.command(epilog=EXAMPLES)
@click.argument("first", metavar="NET", type=NETWORK)
@click.argument("others", metavar="OTHER…", type=NETWORK, nargs=-1, required=True)
@click.option("--measure", is_flag=True, help="Time each network on ONNX Runtime.")
@click.option(
    "--on",
    metavar="MACHINE",
    shell_complete=MACHINES,
    help="Predict times for a machine, see `machine --list`; `this` for a calibrated one.",
)
@click.option(
    "--columns",
    metavar="A,B,…",
    shell_complete=names_in("export.comparison:COLUMNS"),
    help="name, params, macs, flops, counted, activations, memory, peak, weights, field, time.",
)
@click.option(
    "--sort",
    metavar="COLUMN",
    shell_complete=names_in("export.comparison:COLUMNS"),
    help="Sort networks by a column, largest first.",
)
@click.option(
    "--layers", is_flag=True, help="List the layers that differ, also for more than two networks."
)
@form_options(RESULT_FORMS)
@click.option(
    "--like",
    metavar="CONVENTION",
    shell_complete=CONVENTION_NAMES,
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
def command(
    first: str,
    others: tuple[str, ...],
    form: str | None,
    output: str | None,
    **options: Unpack[CompareOptions],
) -> None:
    """Print a row for NET and every OTHER, with ratios to NET, and the layers that differ.

    Layers are matched by name, and where names differ by operation, shape and order. A NET may
    also be a run of `measure` or a report that was written with -o FILE.json.
    """
    from layerscope.api.comparing import compare

    form = chosen_form(form, output, RESULT_FORMS)
    columns = [name.strip() for name in (options["columns"] or "").split(",") if name.strip()]
    if options["columns"] is not None and not columns:
        raise UsageError("--columns is empty; a wrong name lists them all")
    if form == "csv" and (options["layers"] or options["everything"]):
        option = "--layers" if options["layers"] else "--all"
        raise UsageError(f"{option} cannot be combined with --as csv: it has no table of layers")
    show = progress_bar()
    try:
        found = compare(
            first,
            *others,
            **({} if options["like"] is None else {"like": options["like"]}),
            measure=options["measure"],
            on=options["on"],
            progress=show,
            **analyze_options(options),
        )
    finally:
        show("", 1, 1)
    everything, stamp = options["everything"], not options["no_stamp"]
    view = {
        "columns": columns,
        "sort": options["sort"] or "",
        "layers": True if options["layers"] or everything else None,
        "everything": everything,
        "stamp": stamp,
    }
    deliver_result(found, form, output, view, everything=everything, stamp=stamp)
    report_cache_problems()
