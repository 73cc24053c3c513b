"""The NET argument and the shapes that go with it, for every command that takes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from layerscope.errors import UsageError

Command = Callable[..., Any]


class Network(click.ParamType):  # type: ignore[type-arg]
    """A name of the zoo, a file, or a PyTorch model by name."""

    name = "network"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Zoo names that begin so."""
        from click.shell_completion import CompletionItem

        from layerscope.zoo import NAMES

        return [CompletionItem(name) for name in NAMES if name.startswith(incomplete)]


NETWORK = Network()


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
            "--batch", "-b", type=int, metavar="N", help="Batch size.  [default: the network's, 1]"
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
        click.option("--weights", metavar="FILE", help="The file of the weights, if it is apart."),
        click.option(
            "--dim",
            "dims",
            multiple=True,
            metavar="NAME=N",
            help="A size that the file names and leaves open, such as batch=4.",
        ),
        click.option(
            "--proposals",
            type=int,
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
        if not name or not size.strip().isdecimal() or not int(size):
            raise UsageError(f"--dim {text}: expected NAME=N, such as batch=4")
        if dims.setdefault(name, int(size)) != int(size):
            raise UsageError(f"--dim is given twice for {name}")
    return dims


def parse_shapes(given: tuple[str, ...]) -> dict[str, tuple[int, ...]] | None:
    """Shapes of inputs from 3x227x227 or NAME=1x3x227x227; "" is the first input."""
    shapes: dict[str, tuple[int, ...]] = {}
    for text in given:
        name, _, sizes = text.rpartition("=")
        if name and not sizes.strip():  # a scalar
            shapes[name] = ()
            continue
        parts = re.split("[x×,]", sizes.strip())
        try:
            shape = tuple(int(part) for part in parts)
        except ValueError:
            raise UsageError(f"--input {text}: expected sizes such as 3x224x224") from None
        if min(shape) < 1:
            raise UsageError(f"--input {text}: expected every size to be at least 1")
        if name in shapes:
            raise UsageError(f"--input is given twice for {name or 'the first input'}")
        shapes[name] = shape
    return shapes or None
