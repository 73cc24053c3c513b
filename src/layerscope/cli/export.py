"""layerscope export: write a network for other programs."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Unpack

import click

from layerscope.cli.network import (
    NETWORK,
    WHOLE_NUMBER,
    NetworkOptions,
    analyze_options,
    file_options,
    input_options,
    names_in,
)
from layerscope.cli.output import OUTPUT, deliver, deliver_all
from layerscope.errors import UnknownName, UsageError
from layerscope.escaping import one_line
from layerscope.export import BINARY, FORMS, SUFFIXES, TARGETS

if TYPE_CHECKING:
    from layerscope.report import Report

TABLES = {form: module for form, module in FORMS.items() if form != "text"}
PICTURES = ("dot", "svg")  # targets that draw every layer
ALL_TARGETS = (*TARGETS, *BINARY, *TABLES)
BY_SUFFIX = {suffix: form for suffix, form in SUFFIXES.items() if form in TABLES} | {
    ".dot": "dot", ".gv": "dot", ".onnx": "onnx", ".svg": "svg",
    ".builder": "builder",
}  # fmt: skip

EXAMPLES = """\b
Examples:
  layerscope export resnet18 -o resnet18.dot    # dot -Tsvg resnet18.dot
  layerscope export densenet121 --depth 2 -o modules.dot
  layerscope export resnet50 -o resnet50.svg             # a picture
  layerscope export model.onnx --to model-explorer -o figures/
  layerscope export run.json --to model-explorer --figure time
  layerscope export resnet50 --to scalesim -o resnet50.csv
  layerscope export resnet50 --to timeloop -o problems/  # a file per layer
  layerscope export resnet50 --to zigzag --dtype int8 -o resnet50.yaml
  layerscope export vgg16 --to json | jq .totals
  layerscope export resnet18 -o resnet18.onnx            # random weights
  layerscope export llama-3-405b --zero-weights -o llama.onnx

\b
Simulators read matrix products only: convolutions, linear layers, attention.
Layers that are left out are counted on stderr.
"""


class ExportOptions(NetworkOptions):
    """Options of the command."""

    depth: int | None
    figure: str | None
    seed: int | None
    zero_weights: bool


@click.command(epilog=EXAMPLES)
@click.argument("network", metavar="NET", type=NETWORK)
@click.option(
    "--to",
    "target",
    metavar="TARGET",
    shell_complete=names_in("cli.export:ALL_TARGETS"),
    help=f"{', '.join(ALL_TARGETS)}.  [default: by the suffix of FILE]",
)
@input_options
@file_options
@click.option(
    "--depth",
    type=WHOLE_NUMBER,
    metavar="N",
    help="dot, svg: levels of the module tree; a module at the last one is one node.  [default: "
    "all; svg: as many as give up to 60 boxes]",
)
@click.option(
    "--figure",
    metavar="NAME",
    shell_complete=names_in("export.model_explorer:FIGURES"),
    help="model-explorer: params, macs, flops, activations, memory, or time of a run.  [default: "
    "macs; in a folder all]",
)
@click.option(
    "--seed", type=WHOLE_NUMBER, metavar="N", help="onnx: seed of the random weights.  [default: 0]"
)
@click.option(
    "--zero-weights", is_flag=True, help="onnx: zero weights, which take no space in the file."
)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    type=OUTPUT,
    help="Write to FILE; its suffix chooses the target. For timeloop and model-explorer also a "
    "folder.",
)
def command(
    network: str, target: str | None, output: str | None, **options: Unpack[ExportOptions]
) -> None:
    """Write NET for other programs: as a graph, a table, a simulator workload or an ONNX model."""
    from layerscope.api.networks import analyze, need_operations

    target = target or _target_of(output)
    if target not in ALL_TARGETS:
        raise UnknownName("target", target, ALL_TARGETS, f"; choose from {', '.join(ALL_TARGETS)}")
    _check(target, output, options)
    if target == "model-explorer":
        _explore(network, output, options)
        return
    report = analyze(network, **analyze_options(options))
    if target == "onnx" and output:
        need_operations(report, "--to onnx")
        _save(report, output, options)
        return
    if target == "timeloop" and output and _is_folder(output):
        from layerscope.export.footer import footer
        from layerscope.export.timeloop import files

        below = footer(report, target)
        texts = {name: text + below for name, text in files(report).items()}
        deliver_all(texts, output, target)
    else:
        deliver(_text(report, target, options["depth"]), output, target)
    for line in _warnings(report, target):
        click.echo(f"layerscope: {one_line(line)}", err=True)


def _explore(network: str, output: str | None, options: ExportOptions) -> None:
    """Write node data for Model Explorer, of a network or of a run with its times."""
    from layerscope.api.networks import analyze
    from layerscope.export.model_explorer import files, write
    from layerscope.formats import kind_of_json

    figure, times = options["figure"], None
    if kind_of_json(network) == "run":
        from layerscope.cli.measure import refuse_options
        from layerscope.export.run_json import read_file, reading

        refuse_options(network, options, ("figure",))
        with reading(network):
            run = read_file(network)
            report, times = run.report, run.runs[0].times
    else:
        report = analyze(network, **analyze_options(options))
    if output and _is_folder(output) and figure is None:
        deliver_all(files(report, times), output, "json")
    else:
        deliver(write(report, figure or "macs", times), output, "json")
    for line in _warnings(report, "model-explorer"):
        click.echo(f"layerscope: {one_line(line)}", err=True)


def _warnings(report: Report, target: str) -> list[str]:
    """Layers that were left out; also coverage and notes if the format has no comments."""
    from layerscope.export.footer import COMMENTS
    from layerscope.export.loop_nests import left_out

    if target not in TARGETS or target in PICTURES:
        return []
    line = left_out(report) if target not in ("model-explorer", "builder") else ""
    lines = [line] if line else []
    if target not in COMMENTS and report.coverage.unknown:
        lines.append(str(report.coverage))
    return lines + (list(report.notes) if target not in COMMENTS else [])


def _check(target: str, output: str | None, options: ExportOptions) -> None:
    """Raise for options that the target does not have."""
    if options["depth"] is not None and target not in PICTURES:
        raise UsageError("--depth needs --to dot or svg")
    if options["figure"] is not None and target != "model-explorer":
        raise UsageError("--figure needs --to model-explorer")
    if target in BINARY:
        if output in (None, "-"):
            raise UsageError(f"--to {target} is a binary format: give a file with -o FILE")
        if options["zero_weights"] and options["seed"] is not None:
            raise UsageError("--seed cannot be combined with --zero-weights")
    elif options["zero_weights"] or options["seed"] is not None:
        given = "--zero-weights" if options["zero_weights"] else "--seed"
        raise UsageError(f"{given} needs --to onnx")


def _save(report: Report, output: str, options: ExportOptions) -> None:
    from layerscope.lower.onnx import save

    save(
        output,
        report.graph,
        report.shapes,
        report.costs,
        weights="zero" if options["zero_weights"] else "random",
        seed=options["seed"] or 0,
    )


def _target_of(output: str | None) -> str:
    suffix = os.path.splitext(output or "")[1].lower()
    if suffix and suffix not in BY_SUFFIX:
        raise UsageError(
            f"-o {output}: no target has the suffix {suffix}; choose from {', '.join(BY_SUFFIX)}, "
            "or give a target with --to"
        )
    if not suffix:
        raise UsageError(f"--to is missing; choose from {', '.join(ALL_TARGETS)}")
    return BY_SUFFIX[suffix]


def _text(report: Report, target: str, depth: int | None = None) -> str:
    from layerscope.export.footer import COMMENTS, footer

    if target in TARGETS:
        module, function, _ = TARGETS[target]
        more = {} if depth is None else {"depth": depth}
        full = module if "." in module else f"layerscope.export.{module}"
        text: str = getattr(import_module(full), function)(report, **more)
        return text + (footer(report, target) if target in COMMENTS else "")
    table: str = import_module(f"layerscope.export.{TABLES[target]}").write(report)
    if target == "json":
        return table
    text = table + footer(report, target)
    if target != "html":
        return text
    from layerscope.export.page import page

    return page(report.name, text)


def _is_folder(output: str) -> bool:
    """Whether a path is a folder: an existing one, or a name without a suffix."""
    return output != "-" and (os.path.isdir(output) or not os.path.splitext(output.rstrip("/"))[1])
