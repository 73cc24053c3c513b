"""Names in documents, without the escapes and marks of their form."""

from __future__ import annotations

import re
from html import unescape

LONGEST = 500  # characters of a name
ESCAPED = re.compile(r"\\([\\|*_`<>\[\]&$#%{}~^-])")


def unescaped(text: str) -> str:
    """A name without the escapes of Markdown."""
    words = text.strip()
    if "\\" in words:
        words = ESCAPED.sub(r"\1", words)
    elif "&" in words:
        words = unescape(words)
    return words[:LONGEST]


def bare(text: str) -> str:
    """A name without marks around it, as backticks and asterisks."""
    words = text.strip()
    while len(words) > 1 and words[0] == words[-1] and words[0] in "`*":
        words = words[1:-1].strip()
    return unescaped(words)


LATEX = (
    (r"\char`_", "_"), (r"\textbackslash{}", "\\"), (r"\textasciitilde{}", "~"),
    (r"\textasciicircum{}", "^"), (r"$\times$", "×"), ("$<$", "<"), ("$>$", ">"),
    (r"$\geq$", "≥"), (r"$\leq$", "≤"),
)  # fmt: skip


def from_latex(text: str) -> str:
    """A cell of a LaTeX table as plain text."""
    for escape, sign in LATEX:
        text = text.replace(escape, sign)
    return re.sub(r"\\([&%$#_{}])", r"\1", text).strip()[:LONGEST]
