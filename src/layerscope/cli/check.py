"""layerscope check: fail when a network exceeds its budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from layerscope.api.checking import check as judged
from layerscope.cli.network import (
    CONVENTION_NAMES,
    FILE,
    MACHINES,
    NETWORK,
    Command,
    NetworkOptions,
    file_options,
    input_options,
    reading,
)
from layerscope.cli.output import (
    RESULT_FORMS,
    chosen_form,
    deliver,
    deliver_result,
    form_options,
    report_cache_problems,
)
from layerscope.conventions import CONVENTIONS
from layerscope.errors import OverBudget, UnknownName, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layerscope.report.budgets import Budget

FORMS = (*RESULT_FORMS, "junit")
# limit -> help text; a test checks that every limit is listed
LIMITS = {
    "params": "Maximum number of learnable parameters, such as 5M.",
    "macs": "Maximum number of multiply-adds, such as 300M.",
    "flops": "Maximum FLOPs: 2 per multiply-add, 1 per other operation.",
    "counted": "Maximum of the figure that the convention of --like counts.",
    "activations": "Maximum number of output elements of all layers together.",
    "peak": "Maximum bytes of activations alive at once, such as 2MB or 512KiB.",
    "weights": "Maximum bytes of all weights and buffers.",
    "time": "Maximum time of one forward pass, such as 5ms; needs --measure or --on.",
}
COUNTED = (
    "like", "batch", "inputs", "dtype", "tokens", "decode", "phase", "proposals", "weights", "dims",
)  # fmt: skip

EXAMPLES = """\b
Examples:
  layerscope check resnet18 --max-params 12M --max-macs 2G --max-peak 8MB
  layerscope check vgg16 --dtype int8 --max-weights 128MiB
  layerscope check                       # all budgets in pyproject.toml
  layerscope check resnet18 --config models.toml
  layerscope check -o budgets.xml        # JUnit
  layerscope check resnet18 --max-time 30ms --measure
  layerscope check resnet18 --max-time 5ms --on a100

\b
A budget in pyproject.toml:
  [tool.layerscope.budgets.resnet18]
  max-params = "12M"
  max-peak = "8MB"
  batch = 1             # also: input, dtype, like, network, allow-unknown
"""


class LimitOptions(TypedDict):
    """What `limit_options` adds to the command."""

    max_params: str | None
    max_macs: str | None
    max_flops: str | None
    max_counted: str | None
    max_activations: str | None
    max_peak: str | None
    max_weights: str | None
    max_time: str | None


class CheckOptions(NetworkOptions, LimitOptions):
    """Options of the command."""

    config: str | None
    allow_unknown: bool
    like: str | None
    measure: bool
    on: str | None
    no_stamp: bool


def limit_options(command: Command) -> Command:
    """Add one option per limit."""
    for name, says in reversed(LIMITS.items()):
        unit = {"peak": "BYTES", "weights": "BYTES", "time": "TIME"}.get(name, "COUNT")
        command = click.option(f"--max-{name}", metavar=unit, help=says)(command)
    return command


@click.command(epilog=EXAMPLES)
@click.argument("networks", metavar="[NET]…", type=NETWORK, nargs=-1)
@limit_options
@click.option(
    "--config", metavar="FILE", type=FILE, help="File with the budgets.  [default: pyproject.toml]"
)
@click.option("--allow-unknown", is_flag=True, help="Do not fail because of unknown operators.")
@click.option("--measure", is_flag=True, help="Time each network on ONNX Runtime.")
@click.option(
    "--on",
    metavar="MACHINE",
    shell_complete=MACHINES,
    help="Predict times for a machine, see `machine --list`; `this` for a calibrated one.",
)
@form_options(FORMS)
@click.option(
    "--like",
    metavar="CONVENTION",
    shell_complete=CONVENTION_NAMES,
    help=f"Count by the convention of another tool: {', '.join(CONVENTIONS)}.  [default: exact]",
)
@input_options
@file_options
@click.option("--no-stamp", is_flag=True, help="Leave out the stamps under the table.")
def command(
    networks: tuple[str, ...],
    form: str | None,
    output: str | None,
    **options: Unpack[CheckOptions],
) -> None:
    """Exit with code 1 if a NET exceeds a limit; print by how much and the layers that cost most.

    Without limits, those of the budget file apply. Without NET, all its networks are checked.
    """
    from layerscope.export.budget_results import write_junit
    from layerscope.report.budgets import BudgetResults

    form = chosen_form(form, output, FORMS)
    measure, on, stamp = options["measure"], options["on"], not options["no_stamp"]
    if measure and on is not None:
        raise UsageError("--measure cannot be combined with --on")
    budgets = _budgets(tuple(dict.fromkeys(networks)), options)
    if (measure or on is not None) and not any("time" in budget.limits for budget in budgets):
        raise UsageError(f"--{'measure' if measure else 'on'} needs a limit of the time: max-time")
    found = BudgetResults(tuple([judged(each, measure=measure, on=on) for each in budgets]))
    if form == "junit":
        deliver(write_junit(found), output, form)
    else:
        deliver_result(found, form, output, {"stamp": stamp}, stamp=stamp)
    report_cache_problems()
    if not found.ok:
        raise OverBudget(found.headline)


def _budgets(networks: tuple[str, ...], options: CheckOptions) -> list[Budget]:
    """Budgets from the limits on the command line, else from the budget file."""
    from layerscope.report.budgets import Budget, limits

    values: Mapping[str, object] = options
    given = {f"max-{name}": values[f"max_{name}"] for name in LIMITS}
    maxima = limits({name: text for name, text in given.items() if text is not None})
    if not maxima:
        return _from_file(networks, options)
    if options["config"]:
        raise UsageError("--config cannot be combined with limits on the command line")
    if not networks:
        raise UsageError("limits on the command line need a NET")
    return [
        Budget(
            name,
            name,
            maxima,
            options["batch"],
            list(options["inputs"]) or None,
            options["dtype"],
            options["like"] or "exact",
            options["allow_unknown"],
            dict(reading(options)),
            options["tokens"],
            options["decode"],
        )
        for name in networks
    ]


def _from_file(networks: tuple[str, ...], options: CheckOptions) -> list[Budget]:
    from msgspec.structs import replace

    from layerscope.report.budget_file import TABLE, find, read

    values: Mapping[str, object] = options
    for name in COUNTED:
        if values[name]:
            option = name.removesuffix("s")
            raise UsageError(
                f"--{option} needs limits on the command line; in a file it is a key of {TABLE}"
            )
    file = Path(options["config"]) if options["config"] else find(Path.cwd())
    if file is None:
        raise UsageError(
            f"no limits: give one, such as --max-params 5M, or add {TABLE} to pyproject.toml"
        )
    budgets = read(file)
    for name in networks:
        if name not in budgets:
            raise UnknownName("budget", name, budgets, f"; {file} has {', '.join(budgets)}")
    chosen = [budgets[name] for name in networks or budgets]
    if options["allow_unknown"]:
        chosen = [replace(budget, allow_unknown=True) for budget in chosen]
    return chosen
