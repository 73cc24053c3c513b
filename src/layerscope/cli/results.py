"""layerscope results: rows of a sweep, filtered, sorted, in every form."""

from __future__ import annotations

import click

from layerscope.cli.network import FILE, WHOLE_NUMBER, names_in
from layerscope.cli.output import (
    RESULT_FORMS,
    chosen_form,
    deliver_bytes,
    deliver_result,
    form_options,
)
from layerscope.errors import UsageError

FORMS = (*RESULT_FORMS, "parquet")
EXAMPLES = """\b
Examples:
  layerscope results results.sqlite
  layerscope results results.sqlite --where 'macs < 1e9' --sort -params
  layerscope results r.sqlite --where "status = 'error'" --columns name,error
  layerscope results results.sqlite --columns name,params,macs -o table.tex
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
@form_options(FORMS)
def command(
    file: str,
    where: str,
    sort: str,
    columns: str,
    top: int | None,
    form: str | None,
    output: str | None,
) -> None:  # fmt: skip
    """Print the rows of a FILE that `layerscope sweep` wrote, which is opened read-only."""
    from layerscope.sweeping.results import results

    form = chosen_form(form, output, FORMS)
    names = tuple(name.strip() for name in columns.split(",") if name.strip())
    found = results(file, where=where, sort=sort, columns=names, top=top)
    if form != "parquet":
        deliver_result(found, form, output, {})
        return
    if output is None or output == "-":
        raise UsageError("--as parquet needs a file: -o results.parquet")
    from layerscope.export.parquet import to_parquet

    deliver_bytes(to_parquet(found.blocks("frame")), output)
