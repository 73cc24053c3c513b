"""Reports in formats that other programs read. One file a format; this is the table of them."""

from __future__ import annotations

# form -> module; each has write(report, view) -> str, json and text take more
FORMS = {
    "text": "text",
    "markdown": "markdown",
    "csv": "csv",
    "json": "json",
    "latex": "latex",
    "html": "html",
}
SUFFIXES = {
    ".txt": "text", ".md": "markdown", ".csv": "csv", ".json": "json", ".tex": "latex",
    ".html": "html",
}  # fmt: skip

__all__ = ["FORMS", "SUFFIXES"]
