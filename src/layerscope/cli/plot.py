"""layerscope plot: charts of a network or of a measured run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from layerscope.cli.language import (
    GenerationOptions,
    batches_option,
    generation,
    is_language_model,
    language_options,
)
from layerscope.cli.network import (
    MACHINES,
    NETWORK,
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
from layerscope.errors import UsageError
from layerscope.escaping import visible
from layerscope.plot import PLOTS

if TYPE_CHECKING:
    from layerscope.plot.chart import Chart
    from layerscope.report import Report

FORMS = ("json", "html", "svg", "png", "pdf")
BINARY = ("png", "pdf")
BATCHES = "1,2,4,8,16,32,64,128,256"  # of a plot of throughput

EXAMPLES = """\b
Examples:
  layerscope plot resnet50 --of memory -o memory.html
  layerscope plot resnet50 --of costs --theme dark -o costs.svg
  layerscope plot resnet50 --of roofline --on a100 --dtype fp16 -o a100.png
  layerscope measure resnet50 -o run.json
  layerscope plot run.json -o roofline.pdf
  layerscope plot run.json --of time -o time.vl.json
  layerscope plot hf:config.json --of throughput --on h100 --decode 8192

\b
A chart is a Vega-Lite 6 specification (json), which any Vega tool draws.
html is a page that needs no network; svg, png and pdf need the extra plot.
Without a run, layers lie on the roofline: at the FLOP/s that the machine
allows at most. The roofs are those of `layerscope machine`, or of a data
sheet (`layerscope machine --list`).
"""


class PlotOptions(GenerationOptions):
    """Options of the command."""

    what: str | None
    theme: str | None


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
    help="Roofline: take the roofs of a machine of `machine --list`; time: predict it there.  "
    "[default: this one, or that of the run]",
)
@click.option(
    "--theme",
    metavar="THEME",
    shell_complete=names_in("plot.theme:THEMES"),
    help="light or dark.  [default: light; in html that of the reader]",
)
@input_options
@file_options
@language_options
@batches_option
@form_options(FORMS)
def command(
    network: str, form: str | None, output: str | None, **options: Unpack[PlotOptions]
) -> None:
    """Draw memory, costs, parameters, a roofline, times or throughput as a chart."""
    from layerscope.api.plotting import check_plot
    from layerscope.formats import kind_of_json
    from layerscope.plot.theme import config

    form = chosen_form(form, output, FORMS)
    if form in BINARY and output in (None, "-"):
        raise UsageError(f"--as {form} is a binary format: give a file with -o FILE.{form}")
    run = kind_of_json(network) == "run"
    what = options["what"] or ("roofline" if run or options["on"] is not None else "memory")
    check_plot(what, options["on"])
    config(options["theme"] or "light")  # raises before the network is read
    draw = _of_run if run else _of_batches if what == "throughput" else _of_network
    chart = draw(network, what, options)
    data = chart.contents(form)
    if form in BINARY and output is not None:
        deliver_bytes(data, output)
    else:
        deliver(data.decode(), output, form)
    report_cache_problems()


def _of_run(path: str, what: str, options: PlotOptions) -> Chart:
    """A chart of a run in a file."""
    from layerscope.api.plotting import plot_run
    from layerscope.cli.measure import refuse_options
    from layerscope.export.run_json import read_file, reading

    refuse_options(path, options, ("what", "on", "theme"))
    with reading(path):
        return plot_run(read_file(path), what, on=options["on"], theme=options["theme"])


def _of_batches(network: str, what: str, options: PlotOptions) -> Chart:
    """Throughput over latency of a language model on a machine."""
    from layerscope.api.plotting import THROUGHPUT_NEEDS, plot_generation

    machine = options["on"]
    if machine in (None, "this") or not is_language_model(network):
        raise UsageError(THROUGHPUT_NEEDS)
    if options["batch"] is None and options["batches"] is None:
        options["batches"] = BATCHES
    return plot_generation(generation(network, machine, options), what, theme=options["theme"])


def _of_network(network: str, what: str, options: PlotOptions) -> Chart:
    """A chart that needs no run."""
    from layerscope.api.networks import analyze
    from layerscope.api.plotting import chosen_machine, plot_report, time_needs_run
    from layerscope.report.measurement import STORED_AS

    for name in ("batches", "weight_dtype", "cache_dtype"):
        if options[name] is not None:
            raise UsageError(f"--{name.replace('_', '-')} applies to --of throughput")
    on, dtype = options["on"], options["dtype"]
    if what == "time" and on is None:
        saved = _report(network, options)
        raise UsageError(time_needs_run(network if saved is None else visible(saved.name)))
    if what == "roofline":
        chosen_machine(on)  # raises before the network is read
    settings = analyze_options(options)
    if dtype is not None and what in ("roofline", "time"):
        settings["dtype"] = STORED_AS.get(dtype, dtype)
    report = _report(network, options) or analyze(network, **settings)
    return plot_report(report, what, on=on, dtype=dtype, theme=options["theme"])


def _report(path: str, options: PlotOptions) -> Report | None:
    """The report in a file that `show NET -o FILE.json` wrote; None for another kind of file."""
    from layerscope.cli.measure import refuse_options
    from layerscope.export.report_file import read_file
    from layerscope.formats import kind_of_json

    if kind_of_json(path) != "report":
        return None
    refuse_options(path, options, ("what", "on", "theme"), "a report in a file")
    return read_file(path)
