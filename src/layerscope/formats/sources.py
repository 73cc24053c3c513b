"""Where the bytes of a network come from: regular files, and standard input copied to one.

Pipes and devices are refused by name before they are opened, as reading one may never end.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from layerscope.errors import FormatError

STANDARD_INPUT = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
LABEL = "standard input"
STDIN_BYTES = 1 << 30  # of standard input
HEAD_BYTES = 4096  # enough of a file to tell what it is
CHUNK = 1 << 20
KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


_copies: list[str] = []  # files that standard input is copied to


def labelled(text: str) -> str:
    """A text that says standard input where it names the file of its copy."""
    for path in _copies:
        text = text.replace(path, LABEL)
    return text


def is_copy(path: str) -> bool:
    """Whether a file is the copy of standard input."""
    return path in _copies


def special(path: str) -> str | None:
    """What a path is if it can be opened and is no file: a pipe, a device, a socket."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return None
    return next((what for is_kind, what in KINDS if is_kind(mode)), None)


def check_file(path: str) -> None:
    """Raise for a pipe or a device, which may never end."""
    what = special(path)
    if what is not None:
        raise FormatError(f"{path}: {what}, expected a file; - reads standard input")


def head_of(path: str) -> bytes:
    """The first bytes of a regular file."""
    check_file(path)
    with open(path, "rb") as file:
        return file.read(HEAD_BYTES)


@contextmanager
def standard_input() -> Iterator[str]:
    """Standard input as a file that readers open, named after what its first bytes are."""
    from layerscope.formats import suffix_of
    from layerscope.interrupts import scratch_folder

    stream = None if sys.stdin is None else sys.stdin.buffer
    if stream is None or stream.closed:
        raise FormatError("standard input is closed; give a file, or pipe one in")
    if stream.isatty():
        raise FormatError("standard input is a terminal; pipe a file in, or give its name")
    head = b""
    while len(head) < HEAD_BYTES and (more := stream.read(HEAD_BYTES - len(head))):
        head += more
    with scratch_folder() as folder:
        path = os.path.join(folder, f"stdin{suffix_of(LABEL, head)}")
        with open(path, "wb") as file:
            file.write(head)
            while more := stream.read(CHUNK):
                file.write(more)
                if file.tell() > STDIN_BYTES:
                    most = f"STDIN_BYTES = {STDIN_BYTES:,}"
                    raise FormatError(f"{LABEL}: more than {most} bytes; give a file")
        _copies.append(path)
        yield path
