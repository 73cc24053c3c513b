"""Loads the code that prints a result: a Report, a Comparison, a Measurement …

export/ and notations/ import report/, and report/ must not import them back. So the methods that
print, such as `Report.to_json`, name a printer of this table, which is imported when the method is
called. See docs/decisions/0005-report-methods.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from layerscope.report.types import Report

Form = Literal["text", "markdown", "csv", "latex", "html"]

PRINTERS = {
    "text": "layerscope.export.text",
    "markdown": "layerscope.export.markdown",
    "csv": "layerscope.export.csv",
    "latex": "layerscope.export.latex",
    "html": "layerscope.export.html",
    "json": "layerscope.export.json",
    "frame": "layerscope.export.frame",
    "footer": "layerscope.export.footer",
    "table": "layerscope.export.table",
    "render": "layerscope.export.render",
    "page": "layerscope.export.page",
    "report": "layerscope.export.report",
    "comparison": "layerscope.export.comparison",
    "explanation": "layerscope.export.explanation",
    "measured": "layerscope.export.measured",
    "predicted": "layerscope.export.predicted",
    "generation": "layerscope.export.generation",
    "generation_runs": "layerscope.export.generation_runs",
    "budgets": "layerscope.export.budget_results",
    "audit": "layerscope.export.audit",
    "sweep": "layerscope.export.sweep_results",
    "machine": "layerscope.export.machine",
    "fit": "layerscope.export.fit_lines",
    "notations": "layerscope.notations",
    "plots": "layerscope.api.plotting",
}


class ViewOptions(TypedDict, total=False):
    """Which rows and columns of a report are printed, as on the command line."""

    columns: Sequence[str]
    depth: int | None
    sort: str
    top: int | None
    fold: bool
    by: str
    all: bool


def printer(name: str) -> ModuleType:
    """The module that prints."""
    return import_module(PRINTERS[name])


def table_text(report: Report, form: Form, view: ViewOptions, **options: object) -> str:
    """The table of a report in one form."""
    text: str = printer(form).write(report, view_of(view), **options)
    return text


def view_of(options: ViewOptions) -> object:
    """The options as export/ takes them."""
    from layerscope.report.view_options import checked

    views = printer("table").TableView
    defaults = dict(zip(views.__struct_fields__, views.__struct_defaults__, strict=True))
    given = checked(options, defaults)
    view: object = views(**{**given, "columns": tuple(given.get("columns", ()))})
    return view
