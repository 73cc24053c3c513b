"""layerscope predict: predict the time of layers on this machine or another one."""

from __future__ import annotations

from typing import Unpack

import click

from layerscope.cli.language import (
    GenerationOptions,
    batches_option,
    generation,
    is_language_model,
    is_weight_file,
    language_options,
)
from layerscope.cli.network import (
    MACHINES,
    NETWORK,
    WHOLE_NUMBER,
    analyze_options,
    file_options,
    input_options,
)
from layerscope.cli.output import (
    RESULT_FORMS,
    chosen_form,
    deliver,
    deliver_result,
    form_options,
    report_cache_problems,
    terminal,
)
from layerscope.cli.phases import check_phases, phases
from layerscope.errors import UsageError

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


class PredictOptions(GenerationOptions):
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
@language_options
@batches_option
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
    if machine not in HERE and is_language_model(network):
        deliver_result(generation(network, machine, options), form, output, view)
        return
    for name in ("batches", "weight_dtype", "cache_dtype"):
        if options[name] is not None:
            option = "--" + name.replace("_", "-")
            raise UsageError(
                f"{option} applies to the configuration of a language model, hf:config.json, on a "
                "machine that --on names"
            )
    both = options["tokens"] is not None and options["decode"] is not None
    if both and (network.startswith("hf:") or is_weight_file(network)):
        check_phases(form)
        _predict_steps(network, form, output, options)
        return
    found = predict(
        network, on=options["on"], threads=options["threads"], **analyze_options(options)
    )
    deliver_result(found, form, output, view)
    report_cache_problems()


def _predict_steps(network: str, form: str, output: str | None, options: PredictOptions) -> None:
    """The prompt and one token after it, one after the other."""
    from layerscope.api.timing import predict

    view = {"sort": options["sort"], "top": options["top"], "stamp": not options["no_stamp"]}
    texts = []
    for is_prompt in (True, False):
        one = analyze_options(options)
        one["decode" if is_prompt else "tokens"] = None
        found = predict(network, on=options["on"], threads=options["threads"], **one)
        if form == "json":
            texts.append(found.to_json())
        elif form == "markdown":
            texts.append(found.to_markdown(**view))
        else:
            texts.append(found.to_text(width=terminal(bool(output))[0], **view))
    deliver(phases(texts, form, (options["tokens"], options["decode"])), output, form)
    report_cache_problems()
