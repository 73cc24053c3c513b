"""A report in the forms of `show`: the table with what is under it, notations, JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from layerscope.cli.output import terminal, wrapped
from layerscope.conventions import CONVENTIONS
from layerscope.errors import UsageError
from layerscope.export import FORMS
from layerscope.notations import NOTATIONS

if TYPE_CHECKING:
    from layerscope.export.fit_lines import MemoryResults
    from layerscope.export.table import TableView
    from layerscope.report import Report


class TableOptions(TypedDict):
    """Options that choose rows and columns of the table."""

    depth: int | None
    by: str | None
    columns: str | None
    sort: str | None
    top: int | None
    everything: bool
    total: bool
    parts: str | None
    max_columns: int | None
    conventions: str | None
    no_stamp: bool


def render(
    report: Report, form: str, options: TableOptions, requested: MemoryResults, *, to_file: bool
) -> str:
    """The text of a report, with the results that were asked for beside it."""
    from layerscope.export.table import TableView

    stamp = not options["no_stamp"]
    if form == "json":
        from layerscope.export.json import write as write_json

        return write_json(
            report, stamp=stamp, totals_only=options["total"], requested=requested,
            conventions=chosen_conventions(options),
        )  # fmt: skip
    if options["total"]:
        from layerscope.export.text import total_line

        width = terminal(to_file)[0]
        text = total_line(report) + _results(report, form, requested)
        return wrapped(text, width) if width else text
    if form in NOTATIONS:
        from layerscope.export.footer import footer
        from layerscope.notations import findings as notation_findings
        from layerscope.notations import write as write_notation

        text = write_notation(report, form, **_notation_options(options))
        return text + footer(report, form, notation_findings(report, form)) if stamp else text
    view = TableView(
        tuple(_names(options["columns"])) if options["columns"] is not None else (),
        options["depth"],
        options["sort"] or "",
        options["top"],
        by=options["by"] or "",
        all=options["everything"],
    )
    if options["columns"] is not None and not view.columns:
        raise UsageError("--columns is empty; a wrong name lists them all")
    if form == "text":
        from layerscope.export.text import write as write_text

        width, style = terminal(to_file)
        text = write_text(report, view, width=width, style=style)
        below = _below(report, form, requested, view if stamp else None)
        return text + (wrapped(below, width) if below and width else below)
    from importlib import import_module

    table: str = import_module(f"layerscope.export.{FORMS[form]}").write(report, view)
    text = table + _below(report, form, requested, view if stamp else None)
    if form == "html":
        from layerscope.export.page import page

        return page(report.name, text)
    return text


def chosen_conventions(options: TableOptions) -> tuple[str, ...]:
    """Names of the conventions whose figures are written beside the report's own."""
    from layerscope.conventions import convention

    if options["conventions"] is None:
        return ()
    names = tuple(_names(options["conventions"]))
    if not names:
        raise UsageError("--conventions is empty; give names, or all")
    if names == ("all",):
        return CONVENTIONS
    return tuple(convention(name).name for name in names)


def _notation_options(options: TableOptions) -> dict[str, object]:
    """Keyword arguments for the writer of a notation."""
    chosen: dict[str, object] = {}
    if options["parts"] is not None:
        chosen["parts"] = tuple(_names(options["parts"]))
        if not chosen["parts"]:
            raise UsageError("--parts is empty; a wrong name lists them all")
    if options["max_columns"] is not None:
        chosen["max_columns"] = options["max_columns"]
    return chosen


def _below(report: Report, form: str, requested: MemoryResults, stamped: TableView | None) -> str:
    """Lines under the table; those of `--train` and `--fit` are printed even without a stamp."""
    from layerscope.export.footer import footer
    from layerscope.export.table import finding_rows
    from layerscope.report.findings import findings

    lines = _results(report, form, requested)
    below = "\n" + lines if lines else ""
    if stamped is None:
        return below
    return below + footer(report, form, findings(report, rows=finding_rows(report, stamped)))


def _results(report: Report, form: str, requested: MemoryResults) -> str:
    """Sentences, and the table of what fits."""
    from layerscope.export.footer import listing

    lines = listing(requested.lines(report), form)
    table = requested.table()
    if table is None:
        return lines
    from layerscope.export.render import text, to_markdown

    return f"{lines}\n{to_markdown([table]) if form == 'markdown' else text([table])}"


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
