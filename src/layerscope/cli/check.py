"""layerscope check: fail when a network outgrows its budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from layerscope.cli.network import (
    NETWORK,
    Command,
    file_options,
    input_options,
    parse_shapes,
    reading,
)
from layerscope.cli.output import deliver, terminal, wrapped
from layerscope.conventions import CONVENTIONS
from layerscope.errors import OverBudget, UnknownName, UsageError

if TYPE_CHECKING:
    from layerscope.report.budgets import Budget, Verdict

FORMS = ("text", "markdown", "json", "junit")
# limit -> what a user writes after it; that these are all, a test sees to
LIMITS = {
    "params": "Most learnable numbers, such as 5M.",
    "macs": "Most multiply-adds, such as 300M.",
    "flops": "Most FLOPs: 2 per multiply-add, 1 per other operation.",
    "counted": "Most of the convention's own figure, with --like.",
    "activations": "Most elements that all layers together make.",
    "peak": "Most bytes of activations alive at once, such as 2MB or 512KiB.",
    "weights": "Most bytes of all stored arrays.",
}
COUNTED = ("like", "batch", "inputs", "dtype", "phase", "proposals", "weights", "dims")

EXAMPLES = """\b
Examples:
  layerscope check resnet18 --max-params 12M --max-macs 2G --max-peak 8MB
  layerscope check vgg16 --dtype int8 --max-weights 128MiB
  layerscope check                       # all of [tool.layerscope.budgets] in pyproject.toml
  layerscope check resnet18 --config models.toml
  layerscope check --as junit -o budgets.xml

\b
A budget in pyproject.toml:
  [tool.layerscope.budgets.resnet18]
  max-params = "12M"
  max-peak = "8MB"
  batch = 1                              # also: input, dtype, like, network, allow-unknown
"""


def limit_options(command: Command) -> Command:
    """Add an option a limit."""
    for name, says in reversed(LIMITS.items()):
        unit = "BYTES" if name in ("peak", "weights") else "COUNT"
        command = click.option(f"--max-{name}", metavar=unit, help=says)(command)
    return command


@click.command(epilog=EXAMPLES)
@click.argument("networks", metavar="[NET]…", type=NETWORK, nargs=-1)
@limit_options
@click.option("--config", metavar="FILE", help="The file of budgets.  [default: pyproject.toml]")
@click.option("--allow-unknown", is_flag=True, help="Do not fail where an op is unknown.")
@click.option(
    "--as", "form", metavar="FORM", default="text", help=f"{', '.join(FORMS)}.  [default: text]"
)
@click.option(
    "--like",
    metavar="CONVENTION",
    help=f"Count as another system does: {', '.join(CONVENTIONS)}.  [default: exact]",
)
@input_options
@file_options
@click.option("--no-stamp", is_flag=True, help="Leave out the stamps under the table.")
@click.option("--output", "-o", metavar="FILE", help="Write to FILE.")
def command(networks: tuple[str, ...], form: str, output: str | None, **options: Any) -> None:
    """Exit with 1 when a NET exceeds a limit, and tell by how much and which layers cost most.

    Without limits they are those of the file of budgets, without NET all of its networks.
    """
    from layerscope.export import verdicts as export
    from layerscope.export.footer import stamps

    if form not in FORMS:
        raise UnknownName("form", form, FORMS, f"; known: {', '.join(FORMS)}")
    found = [judged(budget) for budget in _budgets(networks, options)]
    stamp = not options["no_stamp"]
    width, style = terminal(bool(output))
    below = [verdict.report.stamp for verdict in found] if stamp else []
    if form == "json":
        text = export.write_json(found, stamp=stamp)
    elif form == "junit":
        text = export.write_junit(found)
    elif form == "markdown":
        text = export.write_markdown(found)
        text += "\n" + stamps(below, form) if below else ""
    else:
        text = export.write_text(found, width=width, style=style)
        lines = stamps(below, form)
        text += "\n" + (wrapped(lines, width) if width else lines) if below else ""
    deliver(text, output, form)
    if not all(verdict.ok for verdict in found):
        raise OverBudget(export.summary(found))


def judged(budget: Budget) -> Verdict:
    """A budget with the account of its network."""
    from layerscope.api import analyze
    from layerscope.report.budgets import judge

    shapes = budget.input
    if isinstance(shapes, (str, list)):
        shapes = parse_shapes(tuple([shapes] if isinstance(shapes, str) else map(str, shapes)))
    report = analyze(
        budget.network,
        input=shapes,
        batch=budget.batch,
        dtype=budget.dtype,
        like=budget.like,
        **budget.reading,
    )
    return judge(report, budget)


def _budgets(networks: tuple[str, ...], options: dict[str, Any]) -> list[Budget]:
    """Those of the options if any limit is among them, else those of the file."""
    from layerscope.report.budgets import Budget, limits

    given = {f"max-{name}": options[f"max_{name}"] for name in LIMITS}
    told = limits({name: text for name, text in given.items() if text is not None})
    if not told:
        return _from_file(networks, options)
    if options["config"]:
        raise UsageError("--config does not go with limits on the command line")
    if not networks:
        raise UsageError("limits on the command line need the name of a network")
    return [
        Budget(
            name,
            name,
            told,
            options["batch"],
            list(options["inputs"]) or None,
            options["dtype"],
            options["like"] or "exact",
            options["allow_unknown"],
            reading(options),
        )
        for name in networks
    ]


def _from_file(networks: tuple[str, ...], options: dict[str, Any]) -> list[Budget]:
    from msgspec.structs import replace

    from layerscope.report.budget_file import TABLE, find, read

    for name in COUNTED:
        if options[name]:
            option = name.removesuffix("s")
            raise UsageError(
                f"--{option} goes with limits on the command line, as a key in {TABLE}"
            )
    file = Path(options["config"]) if options["config"] else find(Path.cwd())
    if file is None:
        raise UsageError(
            f"no limits: give one, such as --max-params 5M, or {TABLE} in a pyproject.toml"
        )
    budgets = read(file)
    for name in networks:
        if name not in budgets:
            known = f"; {file} has {', '.join(budgets)}"
            raise UnknownName("budget", name, budgets, known)
    chosen = [budgets[name] for name in networks or budgets]
    if options["allow_unknown"]:
        chosen = [replace(budget, allow_unknown=True) for budget in chosen]
    return chosen
