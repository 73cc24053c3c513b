"""The lines under the table of a report: findings, stamp, coverage and notes.

Formats of other programs get them as comments. SCALE-Sim's csv has no comments, so it gets none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layerscope.escaping import csv_comment, html, markdown, one_line, visible
from layerscope.report.types import Report

# form -> prefix of a comment line
COMMENTS = {
    "csv": "# ",
    "matconvnet.csv": "# ",
    "matconvnet.dag.csv": "# ",
    "latex": "% ",
    "matconvnet.latex": "% ",
    "matconvnet.dag.latex": "% ",
    "dot": "// ",
    "matconvnet.dag.dot": "// ",
    "timeloop": "# ",
    "zigzag": "# ",
    "builder": "# ",
}
WITH_FINDINGS = ("text", "markdown", "html")
MARKDOWN = (
    "markdown",
    "netscope",
    "netscope.folded",
    "backbone",
    "cs231n.md",
    "layersheet",
    "fvcore",
)


def escape_for(form: str) -> Callable[[str], str]:
    """The function that escapes a line under a table of that form."""
    if form in MARKDOWN:
        return lambda line: markdown(line, keep="_")
    if form in COMMENTS:
        return csv_comment if form.endswith("csv") else one_line
    return html if form == "html" else visible


def facts(report: Report) -> list[str]:
    """Stamp, coverage and notes: what reproduces the figures and what they lack."""
    return [report.stamp, str(report.coverage), *report.notes]


def footer(report: Report, form: str, found: Sequence[str] | None = None) -> str:
    """An empty line, then findings, stamp, coverage and notes; as comments if the form has them.

    `found` are findings in the names of the table above, if these are not those of the layers.
    """
    from layerscope.report.findings import findings
    from layerscope.report.language import lines as language

    escape = escape_for(form)
    lines = [escape(line) for line in facts(report)]
    if form in COMMENTS:
        return "".join(f"{COMMENTS[form]}{line}\n" for line in lines)
    if form in WITH_FINDINGS:
        found = (*(findings(report) if found is None else found), *language(report))
    found = found or ()
    if form == "html":
        return _html([html(line) for line in found], lines)
    blocks = [listing(found, form)] if found else []
    blocks.append(stamps(facts(report), form))
    return "\n" + "\n".join(blocks)


def listing(lines: Sequence[str], form: str) -> str:
    """One sentence per line; a list in Markdown."""
    mark = "- " if form in MARKDOWN else ""
    escape = escape_for(form)
    return "".join(f"{mark}{escape(line)}\n" for line in lines)


def stamps(lines: Sequence[str], form: str) -> str:
    """Stamps and notes, one per line; "" without any."""
    escape = escape_for(form)
    end = "  " if form in MARKDOWN else ""  # keeps lines apart in Markdown
    return "".join(f"{escape(line)}{end}\n" for line in lines)


def _html(found: Sequence[str], lines: Sequence[str]) -> str:
    """Findings as a list, then the stamp; all lines are already escaped."""
    listed = "".join(f"<li>{line}</li>" for line in found)
    findings = f"<ul>{listed}</ul>\n" if listed else ""
    stamp = "<br>".join(lines)
    return f'{findings}<p style="font-size:smaller">{stamp}</p>\n'
