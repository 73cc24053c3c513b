"""layerscope predict: predict the time of layers on this machine or another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from layerscope.cli.language import language_options
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
from layerscope.errors import UnknownName, UsageError
from layerscope.report.quantities import whole

if TYPE_CHECKING:
    from layerscope.report.generation import GenerationTimes

EXAMPLES = """\b
Examples:
  layerscope machine --calibrate                    # once, some minutes
  layerscope predict resnet50
  layerscope predict resnet50 --on rtx4090 --batch 256 --sort --top 10
  layerscope predict vit_b_16 --on a100 --batch 64 -o prediction.json
  layerscope machine --list                         # names of machines
  layerscope predict hf:config.json --on rtx4090 --tokens 2048 --decode 8192
  layerscope predict hf:config.json --on h100 --decode 8192 --batches 1,8,64
"""
HERE = ("this", None)


class PredictOptions(NetworkOptions):
    """Options of the command."""

    on: str | None
    threads: int | None
    sort: bool
    top: int | None
    no_stamp: bool
    batches: str | None
    weight_dtype: str | None
    cache_dtype: str | None


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
@language_options
@click.option(
    "--batches",
    metavar="N,N",
    help="Language models: a row for each of these batch sizes, such as 1,8,64.",
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
    view = {"sort": options["sort"], "top": options["top"], "stamp": not options["no_stamp"]}
    machine = options["on"]
    if machine not in HERE and _is_language_model(network):
        deliver_result(_generation(network, machine, options), form, output, view)
        return
    for name in ("batches", "weight_dtype", "cache_dtype"):
        if options[name] is not None:
            option = "--" + name.replace("_", "-")
            raise UsageError(
                f"{option} applies to the configuration of a language model, hf:config.json, on a "
                "machine that --on names"
            )
    found = predict(
        network, on=options["on"], threads=options["threads"], **analyze_options(options)
    )
    deliver_result(found, form, output, view)
    report_cache_problems()


def _is_language_model(network: str) -> bool:
    """Whether NET is a configuration of a language model that has a description."""
    if not network.startswith("hf:"):
        return False
    from layerscope.llm.account import read_language_model

    try:
        read_language_model(network)
    except UnknownName:
        return False
    return True


def _generation(network: str, machine: str, options: PredictOptions) -> GenerationTimes:
    """The times of a prompt and of a token; options that they do not depend on are refused."""
    from layerscope.api.generating import predict_generation, steps_of

    used = {"on", "batch", "tokens", "decode", "dtype", "sort", "top", "no_stamp", "batches",
            "weight_dtype", "cache_dtype"}  # fmt: skip
    for name, value in options.items():
        if name not in used and value not in (None, (), False):
            raise UsageError(
                f"--{name.replace('_', '-')} does not apply to the times of a language model"
            )
    if options["batches"] is not None and options["batch"] is not None:
        raise UsageError("--batch and --batches, expected one of them")
    batches = [options["batch"] or 1]
    if options["batches"] is not None:
        batches = [whole(text.strip(), "--batches") for text in options["batches"].split(",")]
    weights = options["weight_dtype"] or options["dtype"] or "bf16"
    steps = steps_of(options["tokens"], options["decode"], batches)
    formats = weights, options["cache_dtype"] or "f16"
    return predict_generation(network, steps, on=machine, formats=formats)
