"""Write results to the terminal (with colours, fitted to its width), a pipe or a file.

Also the progress bar on stderr.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable

import click

from layerscope.errors import OutputError
from layerscope.escaping import delivered, one_line, visible
from layerscope.export.text import Style, plain
from layerscope.formats.sources import labelled
from layerscope.interrupts import check, whole_files, write_files

COLOURS = {
    "head": {"bold": True},
    "scope": {"bold": True},
    "total": {"bold": True},
    "rule": {"dim": True},
    "note": {"dim": True},
}
BAR_WIDTH = 24  # characters of the progress bar
COLUMNS = re.compile(r"[0-9]{1,6}")  # at most six digits


def terminal(to_file: bool = False) -> tuple[int | None, Style]:
    """Width to fit (None: no limit) and the style function; colours only on a terminal."""
    width = None
    if COLUMNS.fullmatch(os.environ.get("COLUMNS", "")):
        width = int(os.environ["COLUMNS"]) or None
    elif _is_terminal() and not to_file:
        width = os.get_terminal_size(sys.stdout.fileno()).columns or None
    return (None if to_file else width), (_coloured if _coloured_here(to_file) else plain)


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def _coloured_here(to_file: bool) -> bool:
    wanted = "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return wanted and not to_file and _is_terminal()


def _coloured(text: str, role: str) -> str:
    look = COLOURS.get(role)
    return click.style(text, **look) if look else text


def wrapped(text: str, width: int) -> str:
    """Lines wrapped between words at `width`."""
    from textwrap import fill

    return "\n".join(fill(line, max(width, 20)) for line in text.splitlines()) + "\n"


def deliver(text: str, output: str | None, form: str = "text") -> None:
    """Print the text, or write the file atomically."""
    to_file = output is not None and output != "-"
    text = delivered(labelled(text), form, styled=_coloured_here(to_file))
    if output is None or output == "-":
        if sys.stdout is None:
            raise OutputError("cannot write the output: standard output is closed")
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    deliver_bytes(text.encode(), output)


def deliver_bytes(data: bytes, output: str) -> None:
    """Write a file atomically."""
    try:
        if os.path.isdir(output):
            raise OutputError(f"cannot write {output}: it is a folder")
        if os.path.exists(output) and not os.path.isfile(output):
            with open(output, "wb") as device:  # /dev/stdout and the like
                device.write(data)
            return
        with whole_files(output) as (file,):
            file.write(data)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise OutputError(f"cannot write {output}: {why}") from None


def deliver_all(texts: dict[str, str], folder: str, form: str) -> None:
    """Write one file per text into a folder, all or none."""
    contents = {
        os.path.join(folder, name): delivered(text, form).encode() for name, text in texts.items()
    }
    try:
        write_files(contents, folder)
    except OSError as error:
        raise OutputError(f"cannot write {folder}: {error.strerror or error}") from None


def report_cache_problems() -> None:
    """Print on stderr which cached files were ignored or could not be written."""
    from layerscope.engines.cache import take_remarks

    for remark in take_remarks():
        click.echo(f"layerscope: {one_line(remark)}", err=True)


def progress_bar() -> Callable[[str, int, int], None]:
    """A function that draws the bar: call it with the step, steps done and total.

    It raises after a signal, and draws only on a terminal.
    """
    stream = sys.stderr
    if stream is None or not stream.isatty() or os.environ.get("TERM") == "dumb":
        return lambda what, done, of: check() if done < of else None

    def show(what: str, done: int, of: int) -> None:
        if done < of:
            check()
        if done >= of:
            stream.write("\r\x1b[K")
        else:
            full = BAR_WIDTH * done // max(of, 1)
            stream.write(
                f"\r\x1b[K[{'█' * full}{'·' * (BAR_WIDTH - full)}] {done}/{of} {visible(what)}"
            )
        stream.flush()

    return show
