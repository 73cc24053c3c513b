"""The command line: one file per command, imported when the command is called."""

from __future__ import annotations

import codecs
import gc
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from layerscope import interrupts
from layerscope.version import __version__

COMMANDS = {
    "show": "Print the per-layer table of a network.",
    "compare": "Compare networks: totals side by side, layers that changed.",
    "report": "Write one HTML page: graph, table and charts of networks.",
    "explain": "Print what other counters report for a network, and why.",
    "check": "Fail when a network exceeds its budget.",
    "audit": "Check published tables of layers: find cells that contradict the others.",
    "measure": "Time every layer on an engine, beside the roofline of the machine.",
    "predict": "Predict the time of every layer on this machine or another one.",
    "plot": "Draw memory, costs, parameters, a roofline or times as a chart.",
    "machine": "Measure peak FLOP/s and bandwidth of this machine, or list accelerators.",
    "export": "Write a network for other programs: graphs, tables, simulators, ONNX.",
    "sweep": "Analyze thousands of networks in worker processes, into a SQLite file.",
    "results": "Print, filter, sort and plot the results of a sweep.",
    "zoo": "List the networks that come with layerscope.",
    "completion": "Print the shell completion script.",
}

EXAMPLES = """\b
Examples:
  layerscope show vgg16
  layerscope show resnet50 --batch 32 --dtype fp16 --sort macs --top 10
  layerscope show vgg19 --as cs231n.md
  layerscope compare resnet50 resnet101
  layerscope report resnet50 -o resnet50.html
  layerscope explain resnet50 --figure 4.11G
  layerscope check resnet18 --max-params 12M --max-macs 2G
  layerscope audit README.md
  layerscope measure resnet50 -o run.json
  layerscope export resnet18 --to dot -o resnet18.dot
  layerscope show model.onnx
  layerscope show torchvision:resnet50
  layerscope show hf:config.json --decode 8192
  layerscope show --help                   # all kinds of NET
  layerscope zoo
"""


COLLECT_EVERY = 50_000  # new containers; after 700, as by default, a table takes 60 collections
DEBUG = "Show a traceback with an error; also with LAYERSCOPE_DEBUG=1."


class LazyGroup(click.Group):
    """A group that imports the module of a command when that command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands, in the order of COMMANDS."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = import_module(f"layerscope.cli.{cmd_name}").command
        if not any(param.name == "debug" for param in found.params):
            found.params.append(
                click.Option(["--debug"], is_flag=True, expose_value=False, help=DEBUG)
            )
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, or an error that suggests the nearest one."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from layerscope.errors import UnknownName

            raise UnknownName("command", args[0], COMMANDS, "; see layerscope --help")
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            from layerscope.cli.repeats import check_repeats

            check_repeats(command, ctx, rest)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXAMPLES,
)
@click.version_option(__version__, "-V", "--version", message="layerscope %(version)s")
@click.option("--debug", is_flag=True, help=DEBUG)
@click.pass_context
def group(ctx: click.Context, debug: bool) -> None:
    """Per-layer shapes, parameters, operations, memory and receptive fields of neural networks."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    The process ends with the command: the collector runs seldom, and not at all over what is left
    at the end, which takes Python as long as reading a network of 100 layers.
    """
    gc.set_threshold(COLLECT_EVERY)
    # Its warnings are on kernels that are not installed, which only running a model would need.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    code = run(args)
    gc.freeze()
    interrupts.end(code)


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line; every error becomes one line on stderr and an exit code."""
    given = list(sys.argv[1:] if args is None else args)
    if "_LAYERSCOPE_COMPLETE" in os.environ:
        group.main(args=given, prog_name="layerscope")  # calls sys.exit
    try:
        with interrupts.handlers():
            return _guarded(given)
    except BaseException as error:  # a signal outside the inner handler
        return _complain(error, given)


def _guarded(given: list[str]) -> int:
    try:
        _encode_anything()
        with group.make_context("layerscope", list(given)) as context:
            code = group.invoke(context)
        if sys.stdout is not None:
            sys.stdout.flush()
        interrupts.check()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except BrokenPipeError:
        # The pipe was closed, as by head: stop the interpreter from printing an error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except BaseException as error:
        return _complain(error, given)


# What is printed instead of a sign that the encoding of a terminal lacks.
ASCII = {
    "─": "-", "·": "|", "×": "x", "≥": ">=", "≤": "<=", "…": "~", "→": "->", "±": "+-", "−": "-",
    "µ": "u", "█": "#", "²": "2", "³": "3", "’": "'",
}  # fmt: skip


def _encode_anything() -> None:
    """Print signs that a non-UTF-8 terminal lacks in ASCII, other characters as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not is_utf8(stream.encoding):
            codecs.register_error("layerscope", in_ascii)
            stream.reconfigure(errors="layerscope")


def is_utf8(encoding: str) -> bool:
    """Whether an encoding has all characters."""
    return encoding.lower().replace("-", "") in ("utf8", "utf16", "utf32")


def in_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    """The error handler of encoders that prints `ASCII` instead of what is lacking."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    parts = [ASCII.get(c) or c.encode("ascii", "backslashreplace").decode() for c in text]
    return "".join(parts), error.end


def _complain(error: BaseException, args: list[str]) -> int:
    from layerscope.cli.guard import complain

    debug = "--debug" in args or os.environ.get("LAYERSCOPE_DEBUG", "") not in ("", "0")
    return complain(error, debug)
