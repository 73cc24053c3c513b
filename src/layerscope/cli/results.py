"""layerscope results: rows of a sweep, filtered, sorted, in every form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from layerscope.cli.network import FILE, WHOLE_NUMBER, names_in
from layerscope.cli.output import (
    RESULT_FORMS,
    chosen_form,
    deliver,
    deliver_bytes,
    deliver_page,
    deliver_result,
    form_options,
    progress_bar,
)
from layerscope.errors import UsageError

FORMS = (*RESULT_FORMS, "parquet")
CHARTS = ("json", "html", "svg", "png", "pdf")
EXAMPLES = """\b
Examples:
  layerscope results results.sqlite
  layerscope results results.sqlite --where 'macs < 1e9' --sort -params
  layerscope results r.sqlite --where "status = 'error'" --columns name,error
  layerscope results results.sqlite --columns name,params,macs -o table.tex
  layerscope results results.sqlite --plot params,macs -o pareto.html
  layerscope results results.sqlite -o all.html      # page with all reports
  layerscope results results.sqlite -o all.parquet   # needs the extra parquet
"""


@click.command(epilog=EXAMPLES)
@click.argument("file", metavar="FILE", type=FILE)
@click.option(
    "--where",
    metavar="EXPRESSION",
    default="",
    help="SQL expression over the columns, such as 'macs < 1e9'.",
)
@click.option(
    "--sort",
    metavar="COLUMN",
    default="name",
    show_default=True,
    shell_complete=names_in("report.sweep_results:COLUMNS"),
    help="Sort by a column; -COLUMN for the largest first.",
)
@click.option(
    "--columns",
    metavar="NAMES",
    default="",
    shell_complete=names_in("report.sweep_results:COLUMNS"),
    help="Columns, separated by commas.",
)
@click.option("--top", type=WHOLE_NUMBER, metavar="N", help="Print the first N rows only.")
@click.option(
    "--plot",
    metavar="X,Y",
    default="",
    help="Draw the networks over two figures, with the Pareto front: params,macs.",
)
@click.option(
    "--reports",
    metavar="BYTES",
    default=None,
    help="Most bytes of reports inside the page of -o FILE.html.  [default: 8MB]",
)
@form_options(tuple(dict.fromkeys((*FORMS, *CHARTS))))
def command(
    file: str,
    where: str,
    sort: str,
    columns: str,
    top: int | None,
    plot: str,
    reports: str | None,
    form: str | None,
    output: str | None,
) -> None:  # fmt: skip
    """Print the rows of a FILE that `layerscope sweep` wrote, which is opened read-only.

    With -o FILE.html it writes a page of all networks: a table to sort and filter, a chart, and
    the report of each row.
    """
    from layerscope.sweeping.results import results

    if plot:
        if reports is not None:
            raise UsageError("--reports cannot be combined with --plot")
        _plot(file, plot, {"where": where, "sort": sort, "top": top}, (form, output))
        return
    form = chosen_form(form, output, FORMS)
    names = tuple(name.strip() for name in columns.split(",") if name.strip())
    is_page = form == "html" and output is not None and output != "-"
    if reports is not None and not is_page:
        raise UsageError("--reports has an effect with -o FILE.html only")
    if is_page:
        from layerscope.report.quantities import quantity
        from layerscope.sweeping.pages import REPORT_BYTES, networks_page

        most = REPORT_BYTES if reports is None else quantity(reports, "bytes", "--reports")
        show = progress_bar()
        try:
            text = networks_page(file, most, show, where=where, sort=sort, columns=names, top=top)
        finally:
            show("", 1, 1)
        deliver_page(text, output)
        return
    found = results(file, where=where, sort=sort, columns=names, top=top)
    if form != "parquet":
        deliver_result(found, form, output, {})
        return
    if output is None or output == "-":
        raise UsageError("--as parquet needs a file: -o results.parquet")
    from layerscope.export.parquet import to_parquet

    deliver_bytes(to_parquet(found.blocks("frame")), output)


def _plot(
    file: str, axes: str, view: Mapping[str, Any], target: tuple[str | None, str | None]
) -> None:
    """Write the chart of two figures."""
    from layerscope.plot.chart import themed
    from layerscope.plot.networks import networks
    from layerscope.sweeping.results import results

    asked, output = target
    form = chosen_form(asked, output, CHARTS)
    names = [name.strip() for name in axes.split(",")]
    if len(names) != 2 or names[0] == names[1]:
        raise UsageError(f"--plot {axes}: expected two figures, such as params,macs")
    found = results(file, columns=("name", *names), **view)
    chart = themed(networks(found, names[0], names[1]), None)
    if output is None or output == "-":
        if form in ("png", "pdf"):
            raise UsageError(f"--as {form} needs a file: -o chart.{form}")
        deliver(chart.contents(form).decode(), output, form)
        return
    deliver_bytes(chart.contents(form), output)
