"""Where the bytes of a network come from: files, files that a file names, standard input.

Pipes and devices are refused before they are opened, as reading one may never end.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from layerscope.errors import FormatError
from layerscope.limits import NAME_CHARACTERS

STANDARD_INPUT = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
LABEL = "standard input"
STDIN_BYTES = 1 << 30  # of standard input
HEAD_BYTES = 4096  # of a file, by which its format is recognised
CHUNK = 1 << 20
NUMBERED = r"(?s)(?P<path>.+)#(?P<number>[1-9]\d{0,5})"
KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


_copies: list[str] = []  # files with a copy of standard input


def labelled(text: str) -> str:
    """Text with the path of the copy replaced by `standard input`."""
    for path in _copies:
        text = text.replace(path, LABEL)
    return text


def is_copy(path: str) -> bool:
    """Whether a file is the copy of standard input."""
    return path in _copies


def special(path: str) -> str | None:
    """The kind of a path that is no regular file: a pipe, a device, a socket."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return None
    return next((what for is_kind, what in KINDS if is_kind(mode)), None)


def check_file(path: str) -> None:
    """Raise for a pipe, device or socket, which may never end."""
    what = special(path)
    if what is not None:
        raise FormatError(f"{path}: {what}, expected a file; - reads standard input")


def split_number(path: str) -> tuple[str, int | None]:
    """File and number of `DOC#2`, a network of a document; the number is None for another path."""
    match = re.fullmatch(NUMBERED, path) if "#" in path else None
    if match is None or os.path.exists(path) or not os.path.isfile(match["path"]):
        return path, None
    return match["path"], int(match["number"])


def head_of(path: str) -> bytes:
    """The first bytes of a regular file."""
    check_file(path)
    with open(path, "rb") as file:
        return file.read(HEAD_BYTES)


def file_inside(path: str, name: str) -> str:
    """The path of a file that the file at `path` names; it must be in the same folder or below.

    Where `path` is a symbolic link, the folder of its target is allowed as well: download caches
    have their files in one folder and links to them in another.
    """
    NAME_CHARACTERS.check(len(name), path)
    shown = repr(name[:200])
    parts = name.replace("\\", "/").split("/")
    if not name or "\0" in name or ".." in parts or os.path.isabs(name) or ":" in parts[0]:
        raise FormatError(f"{path}: names the file {shown}, expected one in its own folder")
    found = os.path.join(os.path.dirname(path), name)
    real = os.path.realpath(found)
    folders = (os.path.realpath(os.path.dirname(path)), os.path.dirname(os.path.realpath(path)))
    if not real.startswith(tuple(os.path.join(folder, "") for folder in folders)):
        raise FormatError(f"{path}: names the file {shown}, which links out of its folder")
    if os.path.exists(real) and not os.path.isfile(real):
        raise FormatError(f"{path}: names {shown}, which is no regular file")
    return found


@contextmanager
def standard_input(suffix: str | None = None) -> Iterator[str]:
    """A copy of standard input as a file, with the suffix of the format of its first bytes.

    With a `suffix` it is no network, and no format is looked for.
    """
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
        ending = suffix_of(LABEL, head) if suffix is None else suffix
        path = os.path.join(folder, f"stdin{ending}")
        with open(path, "wb") as file:
            file.write(head)
            while more := stream.read(CHUNK):
                file.write(more)
                if file.tell() > STDIN_BYTES:
                    most = f"STDIN_BYTES = {STDIN_BYTES:,}"
                    raise FormatError(f"{LABEL}: more than {most} bytes; give a file")
        _copies.append(path)
        yield path
