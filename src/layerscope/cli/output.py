"""Where results go: the terminal with colours and its width, a pipe, or a file written at once."""

from __future__ import annotations

import os
import sys

import click

from layerscope.errors import OutputError
from layerscope.export.text import Style, plain

COLOURS = {
    "head": {"bold": True},
    "scope": {"bold": True},
    "total": {"bold": True},
    "rule": {"dim": True},
    "note": {"dim": True},
}


def terminal(to_file: bool = False) -> tuple[int | None, Style]:
    """Width to fit (None: any) and a way to colour; colours only on a terminal that takes them."""
    tty = sys.stdout.isatty() and not to_file
    width = None
    if os.environ.get("COLUMNS", "").isdecimal():
        width = int(os.environ["COLUMNS"]) or None
    elif tty:
        width = os.get_terminal_size(sys.stdout.fileno()).columns or None
    coloured = tty and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return (None if to_file else width), (_coloured if coloured else plain)


def _coloured(text: str, role: str) -> str:
    look = COLOURS.get(role)
    return click.style(text, **look) if look else text


# Names come from strangers' files: no control character of theirs reaches a terminal.
CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
}


def harmless(text: str) -> str:
    """Text whose control characters are written out."""
    return text.translate(CONTROLS)


def wrapped(text: str, width: int) -> str:
    """Lines broken between words where they are longer than `width`."""
    from textwrap import fill

    return "\n".join(fill(line, max(width, 20)) for line in text.splitlines()) + "\n"


def deliver(text: str, output: str | None) -> None:
    """Print the text, or write the file whole or not at all."""
    if output is None or output == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    folder, name = os.path.split(os.path.abspath(output))
    partial = os.path.join(folder, f".{name}.{os.getpid()}.partial")
    try:
        if os.path.exists(output) and not os.path.isfile(output):
            if os.path.isdir(output):
                raise OutputError(f"cannot write {output}: it is a folder")
            with open(output, "w", encoding="utf-8") as device:  # /dev/stdout and the like
                device.write(text)
            return
        try:
            with open(partial, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            os.replace(partial, output)
        finally:
            if os.path.exists(partial):
                os.unlink(partial)
    except OSError as error:
        raise OutputError(f"cannot write {output}: {error.strerror}") from None
