"""A report as every result is printed: its headline, its HTML page, and its form in a notebook.

The tables of a report are printed by one file per form: text, markdown, csv, latex, html, json.
"""

from __future__ import annotations

from layerscope.escaping import visible
from layerscope.export.footer import footer
from layerscope.export.html import write as table
from layerscope.export.table import TableView
from layerscope.report.numbers import exact_text, marked
from layerscope.report.types import Report

MANY_ROWS = 40  # more are folded in a notebook


def headline(report: Report) -> str:
    """Network, parameters and multiply-adds in one line."""
    params = marked(exact_text(report.totals.params), report.sign("params"))
    macs = marked(exact_text(report.totals.macs), report.sign("macs"))
    return f"of {visible(report.name)}: {params} params, {macs} MACs, {len(report.layers)} layers"


def notebook_html(report: Report) -> str:
    """The table with findings and stamp; of many layers the outer modules, all others folded."""
    rows = len(report.layers)
    below = footer(report, "html")
    if rows <= MANY_ROWS:
        return table(report) + below
    outer = table(report, TableView(depth=1))
    return f"{outer}<details><summary>{rows:,} layers</summary>\n{table(report)}</details>\n{below}"
