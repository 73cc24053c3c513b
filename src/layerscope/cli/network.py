"""The NET argument and the options that say how a network is read, shared by the commands."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TypedDict, TypeVar

import click

from layerscope.errors import UsageError
from layerscope.report.quantities import WHOLE, named_sizes, real, shown, whole

Command = TypeVar("Command", bound=Callable[..., object])


class ReaderOptions(TypedDict, total=False):
    """Options for the reader of a file, as keyword arguments of `analyze`."""

    phase: str
    proposals: int
    weights: str
    keep_going: bool
    dims: dict[str, int]


class FileOptions(TypedDict):
    """What `file_options` adds to a command."""

    phase: str | None
    proposals: int | None
    weights: str | None
    keep_going: bool
    dims: tuple[str, ...]


class NetworkOptions(FileOptions):
    """What `input_options` and `file_options` add to a command."""

    inputs: tuple[str, ...]
    batch: int | None
    dtype: str | None
    tokens: int | None
    decode: int | None


class AnalyzeOptions(ReaderOptions):
    """Keyword arguments of `analyze`."""

    input: dict[str, tuple[int, ...]] | None
    batch: int | None
    dtype: str | None
    tokens: int | None
    decode: int | None


def standard_input(ctx: click.Context, suffix: str | None = None) -> str:
    """The path of a copy of standard input, which a command may take once."""
    from layerscope.formats import sources

    if sources.STANDARD_INPUT[0] in ctx.meta:
        raise UsageError("standard input is given twice")
    path = ctx.with_resource(sources.standard_input(suffix))
    ctx.meta[sources.STANDARD_INPUT[0]] = path
    return path


class NetworkParam(click.ParamType):  # type: ignore[type-arg]
    """A zoo name, a file, or the name of a PyTorch model."""

    name = "network"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """The name or path; standard input is copied to a temporary file."""
        from layerscope.formats import sources

        text = str(value)
        if text in sources.STANDARD_INPUT and ctx is not None:
            return standard_input(ctx)
        sources.check_file(text.removeprefix("hf:"))
        if not os.path.isdir(text):
            return text
        from layerscope.api.networks import of_folder

        return of_folder(text)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Zoo names that start with `incomplete`, else files."""
        from click.shell_completion import CompletionItem

        from layerscope.zoo import NAMES

        found = [CompletionItem(name) for name in NAMES if name.startswith(incomplete)]
        return found if found and incomplete else [*found, CompletionItem(incomplete, type="file")]


class WholeNumberParam(click.ParamType):  # type: ignore[type-arg]
    """A whole number in ASCII digits, at most 63 bits."""

    name = "integer"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """The number; a default value already is one."""
        return value if isinstance(value, int) else whole(str(value), _option(param))


class RealNumberParam(click.ParamType):  # type: ignore[type-arg]
    """A finite number."""

    name = "number"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number; a default value already is one."""
        return value if isinstance(value, float) else real(str(value), _option(param))


def _option(param: click.Parameter | None) -> str:
    return max(param.opts, key=len) if param is not None else ""


class FileParam(click.ParamType):  # type: ignore[type-arg]
    """The path of an input file."""

    name = "file"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """The path; a pipe or a device is refused."""
        from layerscope.formats import sources

        sources.check_file(str(value))
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Let the shell complete file names."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


class DtypeParam(click.ParamType):  # type: ignore[type-arg]
    """A dtype by our name or by PyTorch's."""

    name = "dtype"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Our name; one that no dtype has is refused where the network is read."""
        from layerscope.graph.dtype_names import dtype_name

        return dtype_name(value)


NETWORK, FILE, DTYPE = NetworkParam(), FileParam(), DtypeParam()
WHOLE_NUMBER, REAL_NUMBER = WholeNumberParam(), RealNumberParam()


def names_in(where: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Complete the names in a table, `module:TABLE`; of a list the last one, after its comma."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from importlib import import_module

        module, _, table = where.partition(":")
        before, comma, last = incomplete.rpartition(",")
        names = getattr(import_module(f"layerscope.{module}"), table)
        return [f"{before}{comma}{name}" for name in names if name.startswith(last)]

    return complete


DTYPES, MACHINES = names_in("graph:DTYPE_BITS"), names_in("engines.accelerators:ACCELERATORS")
CONVENTION_NAMES = names_in("conventions:CONVENTIONS")


def input_options(command: Command) -> Command:
    """Add --batch, --input, --dtype, --tokens and --decode."""
    for option in (
        click.option(
            "--decode",
            type=WHOLE_NUMBER,
            metavar="LENGTH",
            help="Read one token with LENGTH tokens in the key-value cache.",
        ),
        click.option(
            "--tokens",
            type=WHOLE_NUMBER,
            metavar="N",
            help="Sequence length: read N tokens at once (prefill).",
        ),
        click.option(
            "--dtype",
            type=DTYPE,
            metavar="TYPE",
            shell_complete=DTYPES,
            help="Dtype of weights and activations: fp32, fp16, bf16, int8, int4, or a name of "
            "PyTorch such as float16.",
        ),
        click.option(
            "--input",
            "-i",
            "inputs",
            multiple=True,
            metavar="SHAPE",
            help="Input shape, as 3x227x227 or 1x3x227x227; NAME=SHAPE for one of several inputs.",
        ),
        click.option(
            "--batch",
            "-b",
            type=WHOLE_NUMBER,
            metavar="N",
            help="Batch size.  [default: that of the network, else 1]",
        ),
    ):
        command = option(command)
    return command


def file_options(command: Command) -> Command:
    """Add the options for readers of files."""
    for option in (
        click.option(
            "--keep-going",
            is_flag=True,
            help="Caffe: ignore errors for which Caffe itself refuses a network.",
        ),
        click.option(
            "--weights",
            metavar="FILE",
            type=FILE,
            help="Caffe: the .caffemodel with the weights of a .prototxt.",
        ),
        click.option(
            "--dim",
            "dims",
            multiple=True,
            metavar="NAME=N",
            help="ONNX: value of a symbolic dimension, such as batch=4.",
        ),
        click.option(
            "--proposals",
            type=WHOLE_NUMBER,
            metavar="N",
            help="Number of region proposals per image.  [default: 300]",
        ),
        click.option(
            "--phase",
            metavar="PHASE",
            shell_complete=names_in("formats:PHASES"),
            help="Caffe: test or train.  [default: test]",
        ),
    ):
        command = option(command)
    return command


def reading(options: FileOptions) -> ReaderOptions:
    """The options for the reader of a file that were given on the command line."""
    found: ReaderOptions = {}
    if options["phase"] is not None:
        found["phase"] = options["phase"]
    if options["proposals"] is not None:
        found["proposals"] = options["proposals"]
    if options["weights"] is not None:
        found["weights"] = options["weights"]
    if options["keep_going"]:
        found["keep_going"] = True
    if dims := parse_dims(options["dims"]):
        found["dims"] = dims
    return found


def analyze_options(options: NetworkOptions) -> AnalyzeOptions:
    """The options of a command for `analyze`."""
    return {
        "input": parse_shapes(options["inputs"]),
        "batch": options["batch"],
        "dtype": options["dtype"],
        "tokens": options["tokens"],
        "decode": options["decode"],
        **reading(options),
    }


def parse_dims(given: tuple[str, ...]) -> dict[str, int]:
    """Sizes of symbolic dimensions by name, from NAME=N."""
    dims: dict[str, int] = {}
    for text in given:
        name, _, size = text.rpartition("=")
        if not name or not re.fullmatch(WHOLE, size.strip()):
            raise UsageError(f"--dim {shown(text)}: expected NAME=N, such as batch=4")
        number = whole(size, f"--dim {shown(name)}:")
        if number < 1:
            raise UsageError(f"--dim {shown(text)}: expected NAME=N, such as batch=4")
        if dims.setdefault(name, number) != number:
            raise UsageError(f"--dim is given twice for {name}")
    return dims


def parse_shapes(given: tuple[str, ...]) -> dict[str, tuple[int, ...]] | None:
    """Input shapes from 3x227x227 or NAME=1x3x227x227; "" stands for the first input."""
    return named_sizes(given, "--input") or None
