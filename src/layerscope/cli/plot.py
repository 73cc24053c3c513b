"""layerscope plot: plots of a network or of a measured run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from layerscope.cli.network import (
    MACHINES,
    NETWORK,
    NetworkOptions,
    analyze_options,
    file_options,
    input_options,
    names_in,
)
from layerscope.cli.output import (
    chosen_form,
    deliver,
    deliver_bytes,
    form_options,
    report_cache_problems,
)
from layerscope.errors import UnknownName, UsageError
from layerscope.escaping import visible
from layerscope.plot import PLOTS

if TYPE_CHECKING:
    from layerscope.report import Report
    from layerscope.report.measurement import Machine

FORMS = ("svg", "png")

EXAMPLES = """\b
Examples:
  layerscope plot resnet50 --of memory -o memory.svg
  layerscope plot resnet50 --of roofline --on a100 --dtype fp16 -o a100.svg
  layerscope measure resnet50 -o run.json
  layerscope plot run.json -o roofline.svg
  layerscope plot run.json --of time -o time.png

\b
Without a run, layers lie on the roofline: at the FLOP/s that the machine
allows at most. The roofs are those of `layerscope machine`, or of a data
sheet (`layerscope machine --list`).
"""


class PlotOptions(NetworkOptions):
    """Options of the command."""

    what: str | None
    on: str | None


@click.command(epilog=EXAMPLES)
@click.argument("network", metavar="NET|RUN", type=NETWORK)
@click.option(
    "--of",
    "what",
    metavar="WHAT",
    shell_complete=names_in("plot:PLOTS"),
    help=f"{', '.join(PLOTS)}.  [default: memory; roofline for a run or with --on]",
)
@click.option(
    "--on",
    metavar="MACHINE",
    shell_complete=MACHINES,
    help="Roofline: take the roofs of a machine of `machine --list`.  [default: this one, or that "
    "of the run]",
)
@input_options
@file_options
@form_options(FORMS)
def command(
    network: str, form: str | None, output: str | None, **options: Unpack[PlotOptions]
) -> None:
    """Draw a roofline, the time per layer, or memory over the execution order."""
    from layerscope.formats import kind_of_json
    from layerscope.plot import png

    form = chosen_form(form, output, FORMS)
    if form == "png" and output in (None, "-"):
        raise UsageError("--as png is a binary format: give a file with -o FILE.png")
    run = kind_of_json(network) == "run"
    what = options["what"] or ("roofline" if run or options["on"] is not None else "memory")
    if what not in PLOTS:
        raise UnknownName("plot", what, PLOTS, f"; choose from {', '.join(PLOTS)}")
    if options["on"] is not None and what != "roofline":
        raise UsageError(f"--on applies to --of roofline, not to --of {what}")
    svg = _of_run(network, what, options) if run else _of_network(network, what, options)
    if form == "png" and output is not None:
        deliver_bytes(png(svg), output)
    else:
        deliver(svg, output, form)
    report_cache_problems()


def _of_run(path: str, what: str, options: PlotOptions) -> str:
    """A plot of a run in a file."""
    from layerscope.cli.measure import refuse_options
    from layerscope.export.run_json import read_file, reading
    from layerscope.plot import pictures, roofline
    from layerscope.report.timed import threads_of

    refuse_options(path, options, ("what", "on"))
    with reading(path):
        found = read_file(path)
        report = found.report
        if what == "time":
            return pictures.time_bars(report, found)
        if what != "roofline":
            return _of_report(report, what)
        if options["on"] is None:
            roofs = roofline.roofs_of_run(report, found)
        else:
            machine = _machine(options["on"])
            threads = threads_of(found.runs[0], machine)
            roofs = roofline.roofs_of(machine, report.float_dtype, threads)
        return roofline.measured_roofline(report, found, roofs)


def _of_network(network: str, what: str, options: PlotOptions) -> str:
    """A plot that needs no run."""
    from layerscope.api.networks import analyze, need_operations
    from layerscope.report.measurement import STORED_AS

    if what == "time":
        saved = _report(network, options)
        name = network if saved is None else visible(saved.name)
        raise UsageError(
            f"--of time needs a measured run: layerscope measure {name} -o run.json, then "
            "layerscope plot run.json --of time"
        )
    machine = _machine(options["on"]) if what == "roofline" else None
    dtype = options["dtype"]
    settings = analyze_options(options)
    if machine is not None and dtype is not None:
        settings["dtype"] = STORED_AS.get(dtype, dtype)
    report = _report(network, options) or analyze(network, **settings)
    need_operations(report, "plot")
    if machine is None:
        return _of_report(report, what)
    from layerscope.plot.roofline import attainable_roofline, roofs_of

    product = dtype if dtype in STORED_AS else report.float_dtype
    return attainable_roofline(report, roofs_of(machine, product, machine.cores))


def _report(path: str, options: PlotOptions) -> Report | None:
    """The report in a file that `show NET -o FILE.json` wrote; None for another kind of file."""
    from layerscope.cli.measure import refuse_options
    from layerscope.export.report_file import read_file
    from layerscope.formats import kind_of_json

    if kind_of_json(path) != "report":
        return None
    refuse_options(path, options, ("what", "on"), "a report in a file")
    return read_file(path)


def _of_report(report: Report, what: str) -> str:
    from layerscope.plot import pictures

    draw = pictures.memory_steps if what == "memory" else pictures.activation_bars
    return draw(report)


def _machine(name: str | None) -> Machine:
    """The limits of a data sheet, or those measured on this machine."""
    from layerscope.engines.accelerators import machine_of
    from layerscope.engines.machine import cached_machine
    from layerscope.plot.roofline import NO_ROOF

    if name is not None and name != "this":
        return machine_of(name)
    found = cached_machine()
    if found is None:
        raise UsageError(f"--of roofline needs the limits of a machine: {NO_ROOF}")
    return found
