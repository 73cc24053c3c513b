"""Turn every exception of the command line into one line on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import click

from layerscope import interrupts
from layerscope.errors import LayerscopeError, UsageError
from layerscope.escaping import one_line, visible

USAGE, INPUT, MISSING, INTERRUPTED = 2, 3, 4, 130
LONGEST = 2000  # characters of a message; the middle of a longer one is left out

# exception -> message; the first match applies
MEANINGS: tuple[tuple[type[BaseException], str], ...] = (
    (RecursionError, "nested too deeply"),
    (MemoryError, "out of memory"),
    (OverflowError, "a number is too large"),
    (UnicodeError, "a text that is not valid Unicode"),
    (EOFError, "the data ends too early"),
    (TimeoutError, "took too long"),
    (SystemExit, "the code that was called ended with sys.exit"),
)


def complain(error: BaseException, debug: bool) -> int:
    """Print one line on stderr, after the traceback if `debug`; return the exit code."""
    if debug:
        import traceback

        text = "".join(traceback.format_exception(error))
        with suppress(OSError):  # a full stderr leaves the exit code only
            click.echo(visible(text, "\n"), err=True, nl=False)
    line, code = message_and_code(error)
    if "layerscope.formats.sources" in sys.modules:
        line = sys.modules["layerscope.formats.sources"].labelled(line)
    signalled = interrupts.received()
    if signalled is not None:  # whatever exception the signal ended up as
        code = signalled
        if not isinstance(error, LayerscopeError) or error.exit_code != INTERRUPTED:
            line = "interrupted" if signalled == INTERRUPTED else "terminated"
    with suppress(OSError):
        click.echo(_wrapped(f"layerscope: {shortened(one_line(line))}"), err=True)
    return code


def _wrapped(line: str) -> str:
    """The line, broken between words on a terminal; programs that read it get one line."""
    if sys.stderr is None or not sys.stderr.isatty():
        return line
    from shutil import get_terminal_size
    from textwrap import fill

    width = get_terminal_size().columns
    return fill(line, max(width, 20), break_long_words=False, break_on_hyphens=False)


def shortened(line: str) -> str:
    """A line of bounded length, its middle left out."""
    if len(line) <= LONGEST:
        return line
    half = LONGEST // 2
    return f"{line[:half]} … {line[-half:]}"


def message_and_code(error: BaseException) -> tuple[str, int]:
    """The message for an exception, and the exit code."""
    if isinstance(error, LayerscopeError):
        return error.line, error.exit_code
    if isinstance(error, click.UsageError):
        where = f"; see {error.ctx.command_path} --help" if error.ctx else ""
        return error.format_message().rstrip(".") + where, USAGE
    if isinstance(error, click.ClickException):
        return error.format_message(), USAGE
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        return "interrupted", INTERRUPTED
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        return f"{package} is not installed: pip install {package}", MISSING
    for kind, meaning in MEANINGS:
        if isinstance(error, kind):
            return _message_with_detail(meaning, error), INPUT
    if isinstance(error, OSError):
        return _system(error)
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"{what}; {_where(error)}; --debug shows more", INPUT


def _system(error: OSError) -> tuple[str, int]:
    """The message of the system; an error without a file name is about standard output."""
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}", INPUT
    if isinstance(error, FileNotFoundError):
        return "the current folder does not exist any more", INPUT
    return f"cannot write the output: {error.strerror or error}", UsageError.exit_code


def _message_with_detail(meaning: str, error: BaseException) -> str:
    detail = str(error)
    return f"{meaning}: {detail}" if detail and not isinstance(error, RecursionError) else meaning


def _where(error: BaseException) -> str:
    """File and line that raised it: in layerscope, or in the code that the user named."""
    import traceback

    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if os.path.abspath(frame.filename).startswith(root)]
    if frames and (not own or frames[-1] is not own[-1]) and "site-packages" not in str(frames[-1]):
        return f"raised in {frames[-1].filename}:{frames[-1].lineno}"
    if not own:
        return "this is a bug in layerscope"
    file = os.path.relpath(own[-1].filename, root).replace(os.path.sep, "/")
    return f"this is a bug in layerscope, {file}:{own[-1].lineno}"


__all__ = ["complain", "message_and_code", "shortened"]
