"""layerscope export: a network for other programs."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import click

from layerscope.cli.network import (
    NETWORK,
    WHOLE_NUMBER,
    file_options,
    input_options,
    parse_shapes,
    reading,
)
from layerscope.cli.output import deliver, deliver_all
from layerscope.errors import UnknownName, UsageError
from layerscope.escaping import one_line
from layerscope.export import BINARY, FORMS, SUFFIXES, TARGETS

TABLES = {form: module for form, module in FORMS.items() if form != "text"}
KNOWN = (*TARGETS, *BINARY, *TABLES)
BY_SUFFIX = {**SUFFIXES, ".dot": "dot", ".gv": "dot", ".onnx": "onnx"}

EXAMPLES = """\b
Examples:
  layerscope export resnet18 -o resnet18.dot && dot -Tsvg resnet18.dot -o resnet18.svg
  layerscope export resnet50 --to scalesim -o resnet50.csv
  layerscope export resnet50 --to timeloop -o problems/       # a file a layer
  layerscope export resnet50 --to zigzag --dtype int8 -o resnet50.yaml
  layerscope export vgg16 --to json | jq .totals
  layerscope export resnet18 -o resnet18.onnx                 # random weights, names as in show
  layerscope export llama-3-405b --zero-weights -o llama.onnx # weights told, not stored

\b
Simulators take products only: convolutions, linear layers, attention. What is left out is
counted on stderr.
"""


def complete_targets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Targets that begin so."""
    return [name for name in KNOWN if name.startswith(incomplete)]


@click.command(epilog=EXAMPLES)
@click.argument("network", metavar="NET", type=NETWORK)
@click.option(
    "--to",
    "target",
    metavar="TARGET",
    shell_complete=complete_targets,
    help=f"{', '.join(KNOWN)}.  [default: by the suffix of FILE]",
)
@input_options
@file_options
@click.option(
    "--seed", type=WHOLE_NUMBER, metavar="N", help="Of the random weights of onnx.  [default: 0]"
)
@click.option("--zero-weights", is_flag=True, help="onnx: zeros, which are not stored.")
@click.option("--output", "-o", metavar="FILE", help="Write to FILE, or of timeloop to a folder.")
def command(network: str, target: str | None, output: str | None, **options: Any) -> None:
    """Write NET in a form that other programs read: a graph, a table, a simulator's workload."""
    from layerscope.api import analyze, need_operations

    target = target or _target_of(output)
    if target not in KNOWN:
        raise UnknownName("target", target, KNOWN, f"; known: {', '.join(KNOWN)}")
    _check(target, output, options)
    report = analyze(
        network,
        input=parse_shapes(options["inputs"]),
        batch=options["batch"],
        dtype=options["dtype"],
        **reading(options),
    )
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
        deliver(_text(report, target), output, target)
    for line in _warnings(report, target):
        click.echo(f"layerscope: {one_line(line)}", err=True)


def _warnings(report: Any, target: str) -> list[str]:
    """What the output cannot tell: layers left out of it, and for want of comments the unknown."""
    from layerscope.export.footer import COMMENTS
    from layerscope.export.nests import left_out

    if target not in TARGETS or target == "dot":
        return []
    line = left_out(report)
    lines = [line] if line else []
    if target not in COMMENTS and report.coverage.unknown:
        lines.append(str(report.coverage))
    return lines + (list(report.notes) if target not in COMMENTS else [])


def _check(target: str, output: str | None, options: dict[str, Any]) -> None:
    """Raise where options do not go with the target."""
    if target in BINARY:
        if output in (None, "-"):
            raise UsageError(f"--to {target} is no text: say where it goes with -o FILE")
        if options["zero_weights"] and options["seed"] is not None:
            raise UsageError("--seed does not go with --zero-weights")
    elif options["zero_weights"] or options["seed"] is not None:
        given = "--zero-weights" if options["zero_weights"] else "--seed"
        raise UsageError(f"{given} goes with --to onnx")


def _save(report: Any, output: str, options: dict[str, Any]) -> None:
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
    found = BY_SUFFIX.get(suffix, "text")
    if found == "text":
        raise UsageError(f"--to is missing; known: {', '.join(KNOWN)}")
    return found


def _text(report: Any, target: str) -> str:
    from layerscope.export.footer import COMMENTS, footer

    if target in TARGETS:
        module, function, _ = TARGETS[target]
        text: str = getattr(import_module(f"layerscope.export.{module}"), function)(report)
        return text + (footer(report, target) if target in COMMENTS else "")
    table: str = import_module(f"layerscope.export.{TABLES[target]}").write(report)
    return table if target == "json" else table + footer(report, target)


def _is_folder(output: str) -> bool:
    """Whether a path is one of a folder: it is there, or its name has no suffix."""
    return output != "-" and (os.path.isdir(output) or not os.path.splitext(output.rstrip("/"))[1])
