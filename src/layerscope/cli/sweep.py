"""layerscope sweep: the figures of thousands of networks, in a file of results."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from layerscope.cli.network import CONVENTION_NAMES, DTYPE, DTYPES, MACHINES, WHOLE_NUMBER
from layerscope.cli.output import OUTPUT
from layerscope.conventions import CONVENTIONS
from layerscope.errors import StrictError, UsageError

if TYPE_CHECKING:
    from layerscope.sweeping.run import SweepSummary
    from layerscope.sweeping.tasks import SweepOptions

DEFAULT_FILE = "results.sqlite"
EXAMPLES = """\b
Examples:
  layerscope sweep 'resnet*' vgg16              # zoo networks by pattern
  layerscope sweep models/ -o models.sqlite     # every network in a folder
  layerscope sweep 'torchvision:*' 'timm:resnet*' -j 8
  layerscope sweep 'hf:configs/*.json' --tokens 2048 --dtype bf16
  layerscope sweep list.txt --batch 1,8,32      # a row per network and batch
  layerscope sweep my_search.py:candidates      # what a generator yields
  layerscope sweep 'torchvision:*' --dask tcp://scheduler:8786
  layerscope results results.sqlite --where 'macs < 1e9' --sort params

\b
A sweep that was stopped goes on where it was: run the same command again.
"""


class SweepArguments(TypedDict):
    """Options of the command."""

    batch: str | None
    inputs: tuple[str, ...]
    dtype: str | None
    like: str
    tokens: int | None
    decode: int | None
    measure: bool
    on: str | None


@click.command(epilog=EXAMPLES)
@click.argument("sources", metavar="SOURCE…", nargs=-1, required=True)
@click.option("--batch", "-b", metavar="N,…", help="Batch size, or several: 1,8,32.")
@click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar="SHAPE",
    help="Input shape of every network, as 3x227x227; NAME=SHAPE for one of several.",
)
@click.option(
    "--dtype",
    type=DTYPE,
    metavar="TYPE",
    shell_complete=DTYPES,
    help="Dtype of weights and activations, such as fp16.",
)
@click.option("--tokens", type=WHOLE_NUMBER, metavar="N", help="Sequence length (prefill).")
@click.option(
    "--decode",
    type=WHOLE_NUMBER,
    metavar="LENGTH",
    help="Read one token with LENGTH tokens in the key-value cache.",
)
@click.option(
    "--like",
    metavar="CONVENTION",
    default="exact",
    shell_complete=CONVENTION_NAMES,
    help=f"Count by the convention of another tool: {', '.join(CONVENTIONS)}.  [default: exact]",
)
@click.option(
    "--measure",
    is_flag=True,
    help="Time each network on ONNX Runtime, one at a time whatever -j is.",
)
@click.option(
    "--on",
    metavar="MACHINE",
    shell_complete=MACHINES,
    help="Predict the time on a machine, see `machine --list`.",
)
@click.option(
    "--jobs",
    "-j",
    type=WHOLE_NUMBER,
    metavar="N",
    help="Worker processes.  [default: one per core]",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Use the workers of a running Dask cluster, such as tcp://10.0.0.1:8786.",
)
@click.option(
    "--seconds",
    type=WHOLE_NUMBER,
    metavar="N",
    default=300,
    show_default=True,
    help="Time limit of one network.",
)
@click.option(
    "--memory",
    metavar="BYTES",
    default="4GB",
    show_default=True,
    help="Memory limit of one network, such as 8GB.",
)
@click.option("--again", is_flag=True, help="Repeat networks that FILE has results of.")
@click.option("--strict", is_flag=True, help="Exit with code 1 if a network failed.")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    type=OUTPUT,
    default=DEFAULT_FILE,
    show_default=True,
    help="SQLite file of the results.",
)
def command(
    sources: tuple[str, ...],
    jobs: int | None,
    dask: str | None,
    seconds: int,
    memory: str,
    again: bool,
    strict: bool,
    output: str,
    **options: Unpack[SweepArguments],
) -> None:  # fmt: skip
    """Analyze every network of the SOURCEs in worker processes; write a row each to SQLite.

    A SOURCE is a file, a glob, a folder, a zoo name or pattern, `torchvision:*`, `timm:resnet*`,
    `hf:configs/*.json`, a text file with a source per line, or a Python generator,
    `my_search.py:candidates`. A network that fails, hangs or needs too much memory is a row with
    its error. Results that FILE has are not computed again.
    """
    from layerscope.sweeping.functions import sweep

    if jobs is not None and jobs < 1:
        raise UsageError(f"-j {jobs}: expected at least 1")
    found = sweep(
        *sources, output=output, options=_option_sets(options), jobs=jobs, dask=dask,
        seconds=seconds, memory=memory, again=again, progress=_progress(),
    )  # fmt: skip
    click.echo(str(found))
    if found.failures:
        hint = f"layerscope results {output} --where \"status = 'error'\" --columns name,error"
        click.echo(f"see what failed: {hint}")
        if strict:
            raise StrictError(f"{found.failures} networks failed")


def _option_sets(options: SweepArguments) -> tuple[SweepOptions, ...]:
    """One set of options per batch size."""
    from layerscope.report.quantities import whole
    from layerscope.sweeping.tasks import SweepOptions

    texts = options["batch"].split(",") if options["batch"] is not None else []
    batches: list[int | None] = [whole(text.strip(), "--batch") for text in texts] or [None]
    return tuple(
        SweepOptions(
            batch, options["inputs"], options["dtype"], options["like"], options["tokens"],
            options["decode"], options["measure"], options["on"],
        )
        for batch in dict.fromkeys(batches)
    )  # fmt: skip


def _progress() -> Callable[[SweepSummary, int | None, str], None]:
    """A line on the terminal with counts, rate and remaining time; raises after a signal."""
    from layerscope.escaping import visible
    from layerscope.interrupts import check

    stream = sys.stderr
    drawn = stream is not None and stream.isatty()

    def show(so_far: SweepSummary, total: int | None, name: str) -> None:
        check()
        if not drawn:
            return
        line = progress_line(so_far, total, visible(name))
        stream.write(f"\r\x1b[K{line}")
        if total is not None and so_far.done + so_far.skipped >= total:
            stream.write("\r\x1b[K")
        stream.flush()

    return show


def progress_line(so_far: SweepSummary, total: int | None, name: str) -> str:
    """Networks done, of how many, failures, rate, remaining time, and the last network."""
    done = so_far.done + so_far.skipped
    rate = so_far.done / so_far.seconds if so_far.seconds else 0.0
    line = f"{done:,}" + ("" if total is None else f"/{total:,}")
    line += f", {so_far.failures:,} failed, {60 * rate:,.0f} per minute"
    if total is not None and rate:
        left = (total - done) / rate
        line += f", {left / 60:.0f} min left" if left > 90 else f", {left:.0f} s left"
    return f"{line}, {name}"[:78]
