"""What stands under a report's table: findings, stamp, coverage and notes, as the form allows.

Formats of other programs get them as comments. SCALE-Sim's csv has no comments and gets none.
"""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.report.types import Report

# form -> how a line of comment begins
COMMENTS = {
    "csv": "# ",
    "matconvnet.csv": "# ",
    "latex": "% ",
    "matconvnet.latex": "% ",
    "dot": "// ",
    "timeloop": "# ",
    "zigzag": "# ",
}
WITH_FINDINGS = ("text", "markdown", "html")


def facts(report: Report) -> list[str]:
    """What makes the figures reproducible and tells what they lack: stamp, coverage, notes."""
    return [report.stamp, str(report.coverage), *report.notes]


def footer(report: Report, form: str) -> str:
    """One empty line, then findings, stamp, coverage and notes; comments where a form has them."""
    from layerscope.report.findings import findings
    from layerscope.report.language import lines as language

    lines = facts(report)
    if form in COMMENTS:
        return "".join(f"{COMMENTS[form]}{' '.join(line.split())}\n" for line in lines)
    found = (*findings(report), *language(report)) if form in WITH_FINDINGS else ()
    if form == "html":
        return _html(found, lines)
    blocks = [listing(found, form)] if found else []
    end = "  " if form == "markdown" else ""  # keeps lines apart in Markdown
    blocks.append("".join(f"{line}{end}\n" for line in lines))
    return "\n" + "\n".join(blocks)


def listing(lines: Sequence[str], form: str) -> str:
    """Sentences one below the other, in Markdown as a list."""
    mark = "- " if form == "markdown" else ""
    return "".join(f"{mark}{line}\n" for line in lines)


def _html(found: Sequence[str], lines: Sequence[str]) -> str:
    from html import escape

    listed = "".join(f"<li>{escape(line)}</li>" for line in found)
    findings = f"<ul>{listed}</ul>\n" if listed else ""
    stamp = "<br>".join(map(escape, lines))
    return f'{findings}<p style="font-size:smaller">{stamp}</p>\n'
