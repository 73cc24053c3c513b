"""layerscope show: the per-layer table of one network, in any form."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from layerscope.cli.language import RUNTIME, LanguageOptions, asked, language_options, results
from layerscope.cli.network import (
    CONVENTION_NAMES,
    FILE,
    NETWORK,
    REAL_NUMBER,
    WHOLE_NUMBER,
    NetworkOptions,
    analyze_options,
    file_options,
    input_options,
    names_in,
)
from layerscope.cli.output import chosen_form, deliver, form_options, terminal, wrapped
from layerscope.conventions import CONVENTIONS
from layerscope.errors import StrictError, UnknownName, UsageError
from layerscope.export import FORMS
from layerscope.notations import NOTATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layerscope.cli.network import AnalyzeOptions
    from layerscope.export.fit_lines import MemoryResults
    from layerscope.export.table import TableView
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
  layerscope show model.gguf                       # parameters and bytes by type
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
  layerscope show hf:config.json --decode 8192 --runtime llama.cpp --fit 24GB
  layerscope show my_file.py:make_model --input 1x3x64x64
  layerscope show package.module:Class
"""


VIEW_OPTIONS = ("depth", "by", "columns", "sort", "top")
NOTATION_OPTIONS = ("parts", "max_columns")


class TableOptions(TypedDict):
    """Options that choose rows and columns of the table."""

    depth: int | None
    by: str | None
    columns: str | None
    sort: str | None
    top: int | None
    everything: bool
    total: bool
    parts: str | None
    max_columns: int | None
    conventions: str | None
    no_stamp: bool


class ShowOptions(NetworkOptions, TableOptions, LanguageOptions):
    """Options of the command."""

    like: str | None
    in_place: bool
    train: str | None
    mixed: bool
    checkpoint: bool
    strict: bool
    times: tuple[str, ...]
    power: float | None


class ReportOptions(TypedDict):
    """How the report of a network is counted."""

    like: str
    in_place: bool


FORM_NAMES = tuple(FORMS)


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
@click.option("--in-place", is_flag=True, help="Count activation, norm and add layers as in-place.")
@click.option(
    "--train",
    metavar="OPTIMIZER",
    shell_complete=names_in("analysis.training:STATES"),
    help="Print the memory of a training step with sgd, momentum, adam or adamw.",
)
@click.option(
    "--mixed", is_flag=True, help="With --train: mixed precision, fp16 or bf16 beside fp32 weights."
)
@click.option("--checkpoint", is_flag=True, help="With --train: activation checkpointing.")
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
    from layerscope.notations import notation

    kind = kind_of_json(network)
    if kind == "run":
        from layerscope.cli.measure import show_run

        show_run(network, form, output, options)
        return
    form = chosen_form(form, output, FORM_NAMES, tuple(NOTATIONS))
    _check_options(form, options)
    _check_training(options)
    wanted = asked(network, form, options)
    timed = bool(options["times"]) or (options["runtime"], options["power"]) != (None, None)
    if timed:
        from layerscope.cli.times import check_times, show_times

        check_times(form, options)
    counted: ReportOptions = {
        "like": options["like"] or (notation(form).like if form in NOTATIONS else "exact"),
        "in_place": options["in_place"],
    }
    settings = analyze_options(options)
    settings["dtype"] = settings["dtype"] or ("fp16" if options["mixed"] else None)
    if wanted is not None and not network.startswith("hf:"):
        # A file of weights has no lengths: they are those of the cache.
        settings["tokens"] = settings["decode"] = settings["batch"] = settings["dtype"] = None
    if kind == "report":
        report = _read_report(network, options, counted)
    else:
        from layerscope.api.networks import analyze

        report = analyze(network, **counted, **settings)
    if not timed and report.graph.claims is not None:
        from layerscope.cli.times import is_printed_run, show_times

        timed = is_printed_run(report, network, form, options)
        if timed:
            options["times"] = (network,)
    if timed:
        show_times(report, form, output, options)
    else:
        from layerscope.export.fit_lines import MemoryResults

        if wanted is not None:
            requested = MemoryResults(
                language=results(network, wanted, options, report.totals.param_bytes)
            )
        else:
            requested = _memory_results(network, report, options, counted, settings)
        deliver(_render(report, form, options, requested, to_file=bool(output)), output, form)
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


def _check_training(options: ShowOptions) -> None:
    """Raise for options of `--train` that are wrong or cannot be combined."""
    from layerscope.analysis.training import STATES

    if options["train"] is not None and options["train"] not in STATES:
        raise UnknownName(
            "optimizer", options["train"], STATES, f"; choose from {', '.join(STATES)}"
        )
    for name, given in (("mixed", options["mixed"]), ("checkpoint", options["checkpoint"])):
        if given and options["train"] is None:
            raise UsageError(f"--{name} needs --train")
    if options["mixed"] and options["dtype"] not in (None, "fp16", "bf16"):
        raise UsageError(f"--mixed with --dtype {options['dtype']}, expected fp16 or bf16")
    _fit_bytes(options)


def _fit_bytes(options: ShowOptions) -> int | None:
    """The memory size of `--fit` in bytes."""
    from layerscope.report.quantities import quantity

    return None if options["fit"] is None else quantity(options["fit"], "bytes", "--fit")


def _memory_results(
    network: str,
    report: Report,
    options: ShowOptions,
    counted: ReportOptions,
    settings: AnalyzeOptions,
) -> MemoryResults:
    """Memory of a training step (`--train`) and the largest batch (`--fit`)."""
    from layerscope.export.fit_lines import MemoryResults

    train, mixed, checkpoint = options["train"], options["mixed"], options["checkpoint"]
    training = fitting = None
    if train is not None:
        training = report.training(train, mixed=mixed, checkpoint=checkpoint)
    memory_bytes = _fit_bytes(options)
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
    return MemoryResults(training, fitting)


def _check_options(form: str, options: ShowOptions) -> None:
    """Raise for an option that the form would silently ignore."""
    values: Mapping[str, object] = options
    if options["everything"] and (form in NOTATIONS or options["total"]):
        what = "--total" if options["total"] else f"--as {form}"
        raise UsageError(f"--all cannot be combined with {what}")
    chosen = [name for name in VIEW_OPTIONS if values[name] is not None]
    if chosen and (form in NOTATIONS or form == "json" or options["total"]):
        what = "--total" if options["total"] else f"--as {form}"
        raise UsageError(f"--{chosen[0]} cannot be combined with {what}")
    if options["total"] and form not in ("text", "json"):
        raise UsageError(f"--total cannot be combined with --as {form}")
    if options["conventions"] is not None:
        if form != "json" or options["total"]:
            raise UsageError("--conventions needs --as json, without --total")
        _conventions(options)
    requested = [name for name in ("train", "fit") if values[name] is not None]
    if requested and form not in ("text", "markdown", "json"):
        raise UsageError(f"--{requested[0]} cannot be combined with --as {form}")
    if options["train"] is not None and options["decode"] is not None:
        raise UsageError("--train cannot be combined with --decode")
    for name in NOTATION_OPTIONS:
        able = [each for each, found in NOTATIONS.items() if name in found.options]
        if values[name] is not None and form not in able:
            raise UsageError(f"{_dashed(name)} needs --as {', '.join(able[:-1])} or {able[-1]}")


def _render(
    report: Report, form: str, options: TableOptions, requested: MemoryResults, *, to_file: bool
) -> str:
    from layerscope.export.table import TableView

    stamp = not options["no_stamp"]
    if form == "json":
        from layerscope.export.json import write as write_json

        return write_json(
            report, stamp=stamp, totals_only=options["total"], requested=requested,
            conventions=_conventions(options),
        )  # fmt: skip
    if options["total"]:
        from layerscope.export.footer import listing
        from layerscope.export.text import total_line

        width = terminal(to_file)[0]
        text = total_line(report) + listing(requested.lines(report), form)
        return wrapped(text, width) if width else text
    if form in NOTATIONS:
        from layerscope.export.footer import footer
        from layerscope.notations import findings as notation_findings
        from layerscope.notations import write as write_notation

        text = write_notation(report, form, **_notation_options(options))
        return text + footer(report, form, notation_findings(report, form)) if stamp else text
    view = TableView(
        tuple(_names(options["columns"])) if options["columns"] is not None else (),
        options["depth"],
        options["sort"] or "",
        options["top"],
        by=options["by"] or "",
        all=options["everything"],
    )
    if options["columns"] is not None and not view.columns:
        raise UsageError("--columns is empty; a wrong name lists them all")
    if form == "text":
        from layerscope.export.text import write as write_text

        width, style = terminal(to_file)
        text = write_text(report, view, width=width, style=style)
        below = _below(report, form, requested, view if stamp else None)
        return text + (wrapped(below, width) if below and width else below)
    from importlib import import_module

    table: str = import_module(f"layerscope.export.{FORMS[form]}").write(report, view)
    text = table + _below(report, form, requested, view if stamp else None)
    if form == "html":
        from layerscope.export.page import page

        return page(report.name, text)
    return text


def _conventions(options: TableOptions) -> tuple[str, ...]:
    """Names of the conventions whose figures are written beside the report's own."""
    from layerscope.conventions import convention

    if options["conventions"] is None:
        return ()
    names = tuple(_names(options["conventions"]))
    if not names:
        raise UsageError("--conventions is empty; give names, or all")
    if names == ("all",):
        return CONVENTIONS
    return tuple(convention(name).name for name in names)


def _notation_options(options: TableOptions) -> dict[str, object]:
    """Keyword arguments for the writer of a notation."""
    chosen: dict[str, object] = {}
    if options["parts"] is not None:
        chosen["parts"] = tuple(_names(options["parts"]))
        if not chosen["parts"]:
            raise UsageError("--parts is empty; a wrong name lists them all")
    if options["max_columns"] is not None:
        chosen["max_columns"] = options["max_columns"]
    return chosen


def _dashed(name: str) -> str:
    return "--" + name.replace("_", "-")


def _below(report: Report, form: str, requested: MemoryResults, stamped: TableView | None) -> str:
    """Lines under the table; those of `--train` and `--fit` are printed even without a stamp."""
    from layerscope.export.footer import footer, listing
    from layerscope.export.table import finding_rows
    from layerscope.report.findings import findings

    lines = listing(requested.lines(report), form)
    below = "\n" + lines if lines else ""
    if stamped is None:
        return below
    return below + footer(report, form, findings(report, rows=finding_rows(report, stamped)))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
