"""The options --as, --json and -o, and writing to the terminal, a pipe or a file.

The terminal gets colours and tables fitted to its width. Also the progress bar on stderr.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from layerscope.errors import OutputError, UnknownName, UsageError
from layerscope.escaping import delivered, one_line, visible
from layerscope.export.text import Style, plain
from layerscope.formats.sources import labelled
from layerscope.interrupts import check, whole_files, write_files

if TYPE_CHECKING:
    from layerscope.export.grid import Blocks
    from layerscope.report.results import TableResult

Command = TypeVar("Command", bound=Callable[..., object])
# The form of a file by its suffix, in every command.
SUFFIXES = {
    ".txt": "text", ".md": "markdown", ".csv": "csv", ".json": "json", ".tex": "latex",
    ".html": "html", ".xml": "junit", ".svg": "svg", ".png": "png", ".pdf": "pdf",
    ".parquet": "parquet",
}  # fmt: skip
RESULT_FORMS = ("text", "markdown", "csv", "json", "latex", "html")
COLOURS = {
    "head": {"bold": True},
    "scope": {"bold": True},
    "total": {"bold": True},
    "rule": {"dim": True},
    "note": {"dim": True},
}
BAR_WIDTH = 24  # characters of the progress bar
COLUMNS = r"[0-9]{1,6}"  # at most six digits


def form_options(forms: Sequence[str], more: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Add --as, --json and -o; `more` are forms that have no suffix of their own."""
    listed = ", ".join(forms) + (f", or a notation: {', '.join(more)}" if more else "")
    suffixes = ", ".join(suffix for suffix, form in SUFFIXES.items() if form in forms)

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in (*forms, *more) if name.startswith(incomplete)]

    def add(command: Command) -> Command:
        options = [
            click.option(
                "--as", "form", metavar="FORM", shell_complete=complete,
                help=f"{listed}.  [default: by the suffix of FILE, else {forms[0]}]",
            ),
            click.option("--output", "-o", metavar="FILE", type=OUTPUT,
                         help=f"Write to FILE; its suffix chooses the form: {suffixes}."),
        ]  # fmt: skip
        if "json" in forms:
            flag = click.option("--json", "form", flag_value="json", help="Short for --as json.")
            options.insert(1, flag)
        for option in reversed(options):
            command = option(command)
        return command

    return add


class OutputParam(click.ParamType):  # type: ignore[type-arg]
    """The path of an output file, which shells complete."""

    name = "file"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path; an empty one is refused."""
        if not value:
            raise UsageError("-o is empty, expected a file")
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Let the shell complete file names."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


OUTPUT = OutputParam()


def chosen_form(
    form: str | None, output: str | None, forms: Sequence[str], more: Sequence[str] = ()
) -> str:
    """The form of the output: that of --as, else of the suffix of the file, else the first."""
    if form is not None:
        if form not in forms and form not in more:
            names = (*forms, *more)
            raise UnknownName("form", form, names, f"; choose from {', '.join(names)}")
        return form
    suffix = os.path.splitext(output or "")[1].lower()
    if output is None or output == "-" or not suffix:
        return forms[0]
    found = SUFFIXES.get(suffix)
    if found is None or found not in forms:
        suffixes = [each for each, name in SUFFIXES.items() if name in forms]
        raise UsageError(
            f"-o {output}: no form has the suffix {suffix}; choose from {', '.join(suffixes)}, "
            "or give a form with --as"
        )
    return found


TITLES = {"BudgetResults": "Budgets:", "SweepResults": "Sweep:"}  # of HTML, by class


def deliver_result(
    result: TableResult, form: str, output: str | None, view: Mapping[str, Any], **json: Any
) -> None:
    """Write a result in a form; `view` chooses rows and columns, `json` are options of its JSON."""
    if form == "json":
        deliver(result.to_json(**json), output, form)
        return
    name = type(result).__name__
    title = f"{TITLES.get(name, name)} {result.headline}"
    deliver_blocks(result.blocks(form, **view), form, output, title)


def deliver_blocks(blocks: Blocks, form: str, output: str | None, title: str) -> None:
    """Write tables and lines in a form; `title` is that of an HTML document."""
    from layerscope.export.render import render

    if form == "text":
        width, style = terminal(bool(output))
        text = render(blocks, form, width=width, style=style)
    else:
        text = render(blocks, form)
    if form == "html":
        from layerscope.export.page import page

        text = page(title, text)
    deliver(text, output, form)


def terminal(to_file: bool = False) -> tuple[int | None, Style]:
    """Width to fit (None: no limit) and the style function; colours only on a terminal."""
    width = None
    if (given := os.environ.get("COLUMNS")) and re.fullmatch(COLUMNS, given):
        width = int(given) or None
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


def deliver_page(text: str, output: str | None) -> None:
    """Write text whose escaping is done: a page with scripts, of which nothing may be changed."""
    if output is not None and output != "-":
        deliver_bytes(labelled(text).encode(), output)
        return
    if sys.stdout is None:
        raise OutputError("cannot write the output: standard output is closed")
    sys.stdout.write(labelled(text))
    sys.stdout.flush()


def deliver_bytes(data: bytes, output: str) -> None:
    """Write a file atomically."""
    try:
        if os.path.isdir(output):
            raise OutputError(f"cannot write {output}: it is a folder")
        if os.path.exists(output) and not os.path.isfile(output):
            with open(output, "wb") as device:  # /dev/stdout and the like
                device.write(data)
            return
        target = os.path.realpath(output) if os.path.islink(output) else output
        with whole_files(target) as (file,):
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
