"""layerscope show: the per-layer table of one network, in any form."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from layerscope.cli.language import (
    RUNTIME,
    asked,
    is_weight_file,
    language_options,
    parallel_option,
    results,
)
from layerscope.cli.network import (
    CONVENTION_NAMES,
    FILE,
    NETWORK,
    REAL_NUMBER,
    WHOLE_NUMBER,
    analyze_options,
    file_options,
    input_options,
    names_in,
)
from layerscope.cli.output import chosen_form, deliver, form_options
from layerscope.cli.phases import check_phases, phases
from layerscope.cli.show_forms import render
from layerscope.cli.show_options import (
    ShowOptions,
    check_options,
    check_training,
    fit_bytes,
    zero_of,
)
from layerscope.conventions import CONVENTIONS
from layerscope.errors import StrictError, UsageError
from layerscope.export import FORMS
from layerscope.notations import NOTATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layerscope.cli.language import LanguageRequest
    from layerscope.cli.network import AnalyzeOptions
    from layerscope.export.fit_lines import MemoryResults
    from layerscope.formats.documents import Kind
    from layerscope.report import Report

EXAMPLES = """\b
Examples:
  layerscope show vgg16
  layerscope show resnet50 --input 3x288x288 --batch 8 --depth 2
  layerscope show resnet50 --by op --sort macs
  layerscope show resnet50 --columns name,output,macs --sort macs --top 5
  layerscope show vgg16 --as netscope --like exact
  layerscope show vgg16 --total
  layerscope show googlenet --as json -o googlenet.json
  layerscope show vgg16 --as json --conventions all -o vgg16.json
  layerscope show llama-3-8b --decode 4096 --dtype bf16 --depth 1
  layerscope show nin --times seconds.csv --runtime 0.0079 --as boda

\b
NET is a zoo name, or a file:
  layerscope show train_val.prototxt --phase train --as netscope
  layerscope show net.caffemodel
  layerscope show net.builder                      # export NET --to builder
  layerscope show imagenet-vgg-f.mat
  layerscope show model.onnx --input images=1x3x640x640
  layerscope show model.onnx --dim batch=4 --dim sequence=128
  layerscope show model.pt2                        # torch.export.save
  layerscope show model.safetensors                # parameters only
  layerscope show model.safetensors.index.json
  layerscope show model.gguf                        # parameters by type
  layerscope show state_dict.pt
  layerscope show notes.md                         # a table of layers
  layerscope show notes.md#2                       # its second network
  layerscope show run.json                         # a run of `measure`
  layerscope show report.json                      # show NET -o report.json

\b
Or the name of a PyTorch model:
  layerscope show torchvision:resnet50
  layerscope show torchvision:retinanet_resnet50_fpn --input 3x480x640
  layerscope show timm:vit_tiny_patch16_224 --depth 2
  layerscope show hf:path/to/config.json --tokens 2048
  layerscope show hf:path/to/config.json --decode 8192 --dtype bf16
  layerscope show hf:path/to/config.json --tokens 2048 --decode 8192
  layerscope show hf:config.json --decode 8192 --runtime llama.cpp --fit 24GB
  layerscope show my_file.py:make_model --input 1x3x64x64
  layerscope show package.module:Class
"""


class ReportOptions(TypedDict):
    """How the report of a network is counted."""

    like: str
    in_place: bool


FORM_NAMES = tuple(FORMS)
CONTEXTS_OPEN = "The longest context is not printed: caches of this model_type are not described."


@click.command(epilog=EXAMPLES)
@click.argument("network", metavar="NET", type=NETWORK)
@form_options(FORM_NAMES, tuple(NOTATIONS))
@click.option(
    "--like",
    metavar="CONVENTION",
    shell_complete=CONVENTION_NAMES,
    help=f"Count by the convention of another tool: {', '.join(CONVENTIONS)}.  "
    "[default: exact, or that of the notation]",
)
@input_options
@file_options
@click.option(
    "--depth",
    type=WHOLE_NUMBER,
    metavar="N",
    help="Levels of the module tree to print.  [default: all]",
)
@click.option(
    "--by",
    metavar="WHAT",
    shell_complete=names_in("report.groups:GROUPS"),
    help="Group rows by module (its own layers), op or layer.  [default: the module tree]",
)
@click.option(
    "--columns",
    metavar="A,B,…",
    shell_complete=names_in("report.columns:COLUMNS"),
    help="Columns, see docs/columns.md; a wrong name lists them all.",
)
@click.option(
    "--sort",
    metavar="COLUMN",
    shell_complete=names_in("report.columns:COLUMNS"),
    help="Sort layers by a column, largest first.",
)
@click.option("--top", type=WHOLE_NUMBER, metavar="N", help="Print only the first N rows.")
@click.option(
    "--all", "everything", is_flag=True, help="Also print layers that only compute shapes."
)
@click.option("--total", is_flag=True, help="Print one line: params, MACs, FLOPs, peak memory.")
@click.option(
    "--attention",
    type=click.Choice(["all", "needed"]),
    help="Count all pairs of queries and keys, or those that masks and windows leave.  "
    "[default: all]",
)
@click.option("--in-place", is_flag=True, help="Count activation, norm and add layers as in-place.")
@click.option(
    "--train",
    metavar="OPTIMIZER",
    shell_complete=names_in("analysis.training:STATES"),
    help="Print the memory of a training step with sgd, momentum, adam, adamw, or 8-bit states: "
    "momentum8bit, adam8bit, adamw8bit.",
)
@click.option(
    "--mixed", is_flag=True, help="With --train: mixed precision, fp16 or bf16 beside fp32 weights."
)
@click.option("--checkpoint", is_flag=True, help="With --train: activation checkpointing.")
@click.option(
    "--lora",
    type=WHOLE_NUMBER,
    metavar="RANK",
    help="With --train: adapters of that rank beside linear layers, everything else frozen.",
)
@click.option(
    "--zero",
    metavar="STAGExN",
    help="With --train: bytes of each of N devices under ZeRO or FSDP, such as 3x8 (1: optimizer "
    "state is cut, 2: gradients too, 3: weights too).",
)
@click.option(
    "--fit", metavar="SIZE", help="Print the largest batch that fits into SIZE, such as 8GB."
)
@click.option(
    "--parts",
    metavar="A,B,…",
    help="Parts of the boda notation: layers, info, totals, backward; for a run also profile, "
    "timers. Of matconvnet.dag: layers, params, vars, memory, fields.",
)
@click.option(
    "--max-columns",
    type=WHOLE_NUMBER,
    metavar="N",
    help="Columns in a block of the matconvnet notations.  [default: 18]",
)
@click.option(
    "--times",
    multiple=True,
    metavar="FILE",
    type=FILE,
    help="Times of layers: csv with the heading layer,seconds, a JSON object of seconds, a run of "
    "measure, or Boda's per-call file. Several files are compared.",
)
@click.option(
    "--runtime",
    type=RUNTIME,
    metavar="S|NAME",
    help="Time of the whole network in seconds. Of a language model: the program whose cache is "
    "printed, llama.cpp, vllm, transformers or mlx.",
)
@language_options
@parallel_option
@click.option(
    "--power", type=REAL_NUMBER, metavar="W", help="Power in watts, for the energy of a run."
)
@click.option(
    "--conventions",
    metavar="A,B,…",
    shell_complete=CONVENTION_NAMES,
    help="json: also the figures of these conventions, or of all, with all printed texts.",
)
@click.option("--strict", is_flag=True, help="Exit with code 1 if an operator is unknown.")
@click.option(
    "--no-stamp", is_flag=True, help="Leave out the stamp, findings and notes under the table."
)
def command(
    network: str, form: str | None, output: str | None, **options: Unpack[ShowOptions]
) -> None:
    """Print shapes, parameters, operations, memory and receptive field of every layer of NET."""
    from layerscope.formats import kind_of_json

    kind = kind_of_json(network)
    if kind == "run":
        from layerscope.cli.measure import show_run

        show_run(network, form, output, options)
        return
    form = chosen_form(form, output, FORM_NAMES, tuple(NOTATIONS))
    check_options(form, options)
    check_training(options)
    wanted = asked(network, form, options, train=options["train"], inputs=options["inputs"])
    timed = bool(options["times"]) or (options["runtime"], options["power"]) != (None, None)
    both = options["tokens"] is not None and options["decode"] is not None
    if both and not (wanted is not None and is_weight_file(network)):
        check_phases(form, timed)
        prefill, decode = options.copy(), options.copy()
        prefill["decode"] = decode["tokens"] = None
        both_reports, texts = [], []
        for one in (prefill, decode):
            report = _counted(network, kind, form, one, wanted)
            requested = _requested(network, report, form, one, wanted)
            texts.append(render(report, form, one, requested, to_file=bool(output)))
            both_reports.append(report)
        deliver(phases(texts, form, (options["tokens"], options["decode"])), output, form)
        for report in both_reports:
            _check_strict(report, options)
        return
    if timed:
        from layerscope.cli.times import check_times, show_times

        check_times(form, options)
    report = _counted(network, kind, form, options, wanted)
    if not timed and report.graph.claims is not None:
        from layerscope.cli.times import is_printed_run, show_times

        timed = is_printed_run(report, network, form, options)
        if timed:
            options["times"] = (network,)
    if timed:
        show_times(report, form, output, options)
    else:
        requested = _requested(network, report, form, options, wanted)
        deliver(render(report, form, options, requested, to_file=bool(output)), output, form)
    _check_strict(report, options)


def _counting(form: str, options: ShowOptions) -> ReportOptions:
    from layerscope.notations import notation

    return {
        "like": options["like"] or (notation(form).like if form in NOTATIONS else "exact"),
        "in_place": options["in_place"],
    }


def _settings(network: str, options: ShowOptions, wanted: LanguageRequest | None) -> AnalyzeOptions:
    settings = analyze_options(options)
    settings["dtype"] = settings["dtype"] or ("fp16" if options["mixed"] else None)
    if wanted is not None and is_weight_file(network):
        # The table is that of the arrays: lengths are those of the cache alone.
        settings["tokens"] = settings["decode"] = settings["batch"] = settings["dtype"] = None
    return settings


def _counted(
    network: str,
    kind: Kind | None,
    form: str,
    options: ShowOptions,
    wanted: LanguageRequest | None,
) -> Report:
    """The report of a network, or the one in its file."""
    counted = _counting(form, options)
    if kind == "report":
        report = _read_report(network, options, counted)
    else:
        from layerscope.api.networks import analyze

        report = analyze(network, **counted, **_settings(network, options, wanted))
    if options["attention"] != "needed":
        return report
    if counted["like"] != "exact":
        raise UsageError(f"--attention needed cannot be combined with --like {counted['like']}")
    from layerscope.report.build import with_needed_pairs

    return with_needed_pairs(report)


def _requested(
    network: str,
    report: Report,
    form: str,
    options: ShowOptions,
    wanted: LanguageRequest | None,
) -> MemoryResults:
    """What is printed beside the layers: a language model in use, or memory of any network."""
    from layerscope.export.fit_lines import MemoryResults

    if wanted is not None:
        return MemoryResults(language=results(network, wanted, options))
    settings = _settings(network, options, wanted)
    return _memory_results(network, report, options, _counting(form, options), settings)


def _check_strict(report: Report, options: ShowOptions) -> None:
    if options["strict"] and report.coverage.unknown:
        raise StrictError(f"--strict: {report.coverage}")


def _read_report(path: str, options: ShowOptions, counted: ReportOptions) -> Report:
    """The report in a file; options that would count another network are refused."""
    from layerscope.conventions import convention
    from layerscope.export.report_file import read_file

    values: Mapping[str, object] = options
    for name in ("inputs", "batch", "dtype", "tokens", "decode", "phase", "proposals", "weights",
                 "keep_going", "dims", "in_place"):  # fmt: skip
        if values[name] not in (None, False, ()):
            option = {"inputs": "input", "dims": "dim"}.get(name, name).replace("_", "-")
            raise UsageError(f"--{option} does not apply to a report in a file: {path}")
    report = read_file(path)
    if options["like"] is None and counted["like"] == "exact":
        return report
    from msgspec.structs import replace

    return replace(report, convention=convention(counted["like"]))


def _memory_results(
    network: str,
    report: Report,
    options: ShowOptions,
    counted: ReportOptions,
    settings: AnalyzeOptions,
) -> MemoryResults:
    """Memory of a training step (`--train`) and the largest batch (`--fit`)."""
    from layerscope.analysis.training import sharded
    from layerscope.export.fit_lines import MemoryResults
    from layerscope.report.language import language

    train, mixed, checkpoint = options["train"], options["mixed"], options["checkpoint"]
    training = fitting = None
    if train is not None:
        if options["lora"] is None:
            training = report.training(train, mixed=mixed, checkpoint=checkpoint)
        else:
            from layerscope.api.fitting import train_adapters

            training = train_adapters(
                report, options["lora"], train, mixed=mixed, checkpoint=checkpoint
            )
        if options["zero"] is not None:
            training = sharded(training, *zero_of(options["zero"]))
    memory_bytes = fit_bytes(options)
    if memory_bytes is not None:
        from layerscope.api.fitting import fit
        from layerscope.formats import names_a_model

        # A captured graph has a fixed batch: the model is captured again for every other one.
        source = network if names_a_model(network) else report.graph
        others = {name: settings[name] for name in ("input", "dtype", "tokens", "decode")}
        fitting = fit(
            source, memory_bytes, train=train, mixed=mixed, checkpoint=checkpoint,
            **counted, **others,
        )  # fmt: skip
    is_open = fitting is not None and train is None and not options["inputs"]
    is_open = is_open and network.startswith("hf:") and language(report) is not None
    return MemoryResults(training, fitting, open=CONTEXTS_OPEN if is_open else "")
