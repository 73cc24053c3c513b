"""The NET argument and the shapes that go with it, for every command that takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from layerscope.errors import UsageError
from layerscope.report.quantities import WHOLE, named_sizes, real, shown, whole

Command = Callable[..., Any]


class Network(click.ParamType):  # type: ignore[type-arg]
    """A name of the zoo, a file, or a PyTorch model by name."""

    name = "network"

    def convert(self, value: Any, param: Any, ctx: click.Context | None) -> str:
        """The name or path; standard input is copied to a file for the time of the command."""
        from layerscope.formats import sources

        text = str(value)
        if text not in sources.STANDARD_INPUT or ctx is None:
            sources.check_file(text.removeprefix("hf:"))
            return text
        if sources.STANDARD_INPUT[0] in ctx.meta:
            raise UsageError("standard input is given twice")
        path = ctx.with_resource(sources.standard_input())
        ctx.meta[sources.STANDARD_INPUT[0]] = path
        return path

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Zoo names that begin so."""
        from click.shell_completion import CompletionItem

        from layerscope.zoo import NAMES

        return [CompletionItem(name) for name in NAMES if name.startswith(incomplete)]


class Whole(click.ParamType):  # type: ignore[type-arg]
    """A whole number of ASCII digits, of at most 63 bits."""

    name = "integer"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """The number; a default is one already."""
        return value if isinstance(value, int) else whole(value, _option(param))


class Real(click.ParamType):  # type: ignore[type-arg]
    """A finite number."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """The number; a default is one already."""
        return value if isinstance(value, float) else real(value, _option(param))


def _option(param: Any) -> str:
    return max(param.opts, key=len) if param is not None else ""


class File(click.ParamType):  # type: ignore[type-arg]
    """The path of a file that is read."""

    name = "file"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """The path; a pipe or a device is refused."""
        from layerscope.formats import sources

        sources.check_file(str(value))
        return str(value)


NETWORK, FILE, WHOLE_NUMBER, REAL_NUMBER = Network(), File(), Whole(), Real()


def input_options(command: Command) -> Command:
    """Add --batch, --input and --dtype, which every command takes that analyzes networks."""
    for option in (
        click.option("--dtype", metavar="TYPE", help="Number type: fp32, fp16, bf16, int8, int4."),
        click.option(
            "--input",
            "-i",
            "inputs",
            multiple=True,
            metavar="SHAPE",
            help="Input shape, 3x227x227 or 1x3x227x227; NAME=SHAPE for one of several inputs.",
        ),
        click.option(
            "--batch",
            "-b",
            type=WHOLE_NUMBER,
            metavar="N",
            help="Batch size.  [default: the network's, 1]",
        ),
    ):
        command = option(command)
    return command


def file_options(command: Command) -> Command:
    """Add what a reader of files may be told."""
    for option in (
        click.option(
            "--keep-going", is_flag=True, help="Read on past what the format's program refuses."
        ),
        click.option(
            "--weights", metavar="FILE", type=FILE, help="The file of the weights, if it is apart."
        ),
        click.option(
            "--dim",
            "dims",
            multiple=True,
            metavar="NAME=N",
            help="A size that the file names and leaves open, such as batch=4.",
        ),
        click.option(
            "--proposals",
            type=WHOLE_NUMBER,
            metavar="N",
            help="Regions that a detector's proposal layer hands on.  [default: 300]",
        ),
        click.option("--phase", metavar="PHASE", help="test or train.  [default: test]"),
    ):
        command = option(command)
    return command


def reading(options: dict[str, Any]) -> dict[str, Any]:
    """Those options of a command that are for the reader of a file, where they are given."""
    names = ("phase", "proposals", "weights", "keep_going")
    found = {name: options[name] for name in names if options[name] not in (None, False)}
    dims = parse_dims(options["dims"])
    return {**found, "dims": dims} if dims else found


def parse_dims(given: tuple[str, ...]) -> dict[str, int]:
    """Sizes by name from NAME=N."""
    dims: dict[str, int] = {}
    for text in given:
        name, _, size = text.rpartition("=")
        if not name or not WHOLE.fullmatch(size.strip()):
            raise UsageError(f"--dim {shown(text)}: expected NAME=N, such as batch=4")
        number = whole(size, f"--dim {shown(name)}:")
        if number < 1:
            raise UsageError(f"--dim {shown(text)}: expected NAME=N, such as batch=4")
        if dims.setdefault(name, number) != number:
            raise UsageError(f"--dim is given twice for {name}")
    return dims


def parse_shapes(given: tuple[str, ...]) -> dict[str, tuple[int, ...]] | None:
    """Shapes of inputs from 3x227x227 or NAME=1x3x227x227; "" is the first input."""
    return named_sizes(given, "--input") or None
