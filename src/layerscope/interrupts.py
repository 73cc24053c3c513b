"""Signal handlers, and the removal of partial files and temporary folders after a signal.

The first SIGINT, SIGTERM or SIGHUP raises KeyboardInterrupt; the second ends the process at once.
Paths are registered before files are created, so that `clean` removes them whenever a signal
arrives.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import CodeType, FrameType
from typing import BinaryIO

DEFERRED_S = 1.5  # for which an import or a callback is not interrupted
RETRY_S = 0.02
CODE = 128  # a shell's exit code for signal n is 128 + n
SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class _State:
    received: int | None = None  # the first signal
    pending = False  # not handled yet: C code may have swallowed the exception
    since = 0.0  # when it arrived
    deferrals = 0  # nested uses of `deferred`
    callbacks: set[CodeType] = set()  # noqa: RUF012  functions that C code calls
    leftovers: dict[str, int] = {}  # noqa: RUF012  path -> the process that creates it


def received() -> int | None:
    """The exit code for the signal that has arrived, None without one."""
    return None if _State.received is None else CODE + _State.received


def check() -> None:
    """Raise KeyboardInterrupt again where C code has swallowed the one of a signal."""
    if _State.pending and not _State.deferrals:
        _State.pending = False
        raise KeyboardInterrupt


def acknowledge() -> None:
    """Mark the interrupt as handled, so that the results so far can be printed."""
    _State.pending = False


def _arrived(number: int, frame: FrameType | None) -> None:
    if _State.received is not None:
        clean()
        os._exit(CODE + number)
    _State.received, _State.pending, _State.since = number, True, time.monotonic()
    _raise_where_safe(frame)


def _again(number: int, frame: FrameType | None) -> None:
    if _State.pending:
        _raise_where_safe(frame)


def _raise_where_safe(frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, or retry soon if an import or C code is on the stack."""
    if _State.deferrals:
        return
    if _is_safe(frame) or time.monotonic() - _State.since > DEFERRED_S:
        raise KeyboardInterrupt
    signal.setitimer(signal.ITIMER_REAL, RETRY_S)


def _is_safe(frame: FrameType | None) -> bool:
    """Whether neither an import, which may crash if interrupted, nor a callback is on the stack."""
    if not hasattr(signal, "setitimer"):
        return True
    while frame is not None:
        code = frame.f_code
        if code in _State.callbacks or code.co_filename.startswith("<frozen importlib"):
            return False
        frame = frame.f_back
    return True


def defer_in(function: object) -> None:
    """Register a function that C code calls, in which KeyboardInterrupt would be lost."""
    code = getattr(function, "__code__", None)
    if code is not None:
        _State.callbacks.add(code)


@contextmanager
def handlers() -> Iterator[None]:
    """Install signal handlers, and clean up at the end; ignored signals stay ignored."""
    before = {}
    _State.received, _State.pending = None, False
    try:
        for number in SIGNALS:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                with suppress(ValueError):  # not in the main thread
                    before[number] = signal.signal(number, _arrived)
        if before and hasattr(signal, "SIGALRM"):
            before[signal.SIGALRM] = signal.signal(signal.SIGALRM, _again)
        yield
    finally:
        if hasattr(signal, "SIGALRM") and signal.SIGALRM in before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        clean()
        for number, handler in before.items():
            signal.signal(number, handler)
        _State.pending = False  # what is called later in this process is not interrupted by it


@contextmanager
def deferred() -> Iterator[None]:
    """Defer signals until the end of a block whose steps belong together."""
    _State.deferrals += 1
    try:
        yield
    finally:
        _State.deferrals -= 1
    check()


@contextmanager
def scratch_folder() -> Iterator[str]:
    """A temporary folder of mode 0700 that is removed at the end."""
    from secrets import token_hex
    from tempfile import gettempdir

    with deferred():  # the first call writes a file into the folder, to see whether it can
        folder = gettempdir()
    path = os.path.join(folder, f"layerscope-{os.getpid()}-{token_hex(6)}")
    _State.leftovers[path] = os.getpid()
    try:
        os.mkdir(path, 0o700)
        yield path
    finally:
        _remove(path)


@contextmanager
def whole_files(*paths: str) -> Iterator[list[BinaryIO]]:
    """Files that are renamed to `paths` when all are complete; on an error none is created."""
    partials = [_partial(path) for path in paths]
    try:
        with ExitStack() as stack:
            yield [stack.enter_context(open(partial, "wb")) for partial in partials]
        _rename(partials, paths)
    finally:
        for partial in partials:
            _remove(partial)


def write_files(contents: dict[str, bytes], folder: str) -> None:
    """Write all files into a folder, or none of them; the folder is created if needed."""
    created = not os.path.lexists(folder)
    if created:
        _State.leftovers[folder] = os.getpid()
    partials = [_partial(path) for path in contents]
    try:
        os.makedirs(folder, exist_ok=True)
        for partial, data in zip(partials, contents.values(), strict=True):
            with open(partial, "wb") as file:
                file.write(data)
        _rename(partials, list(contents))
        _State.leftovers.pop(folder, None)
    finally:
        for partial in partials:
            _remove(partial)
        if created and folder in _State.leftovers:
            _remove(folder)


def _partial(path: str) -> str:
    """A temporary name beside the file, registered before it is created."""
    from secrets import token_hex

    folder = os.path.dirname(os.path.abspath(path))
    partial = os.path.join(folder, f".layerscope-{os.getpid()}-{token_hex(6)}.partial")
    _State.leftovers[partial] = os.getpid()
    return partial


def _rename(partials: Sequence[str], paths: Sequence[str]) -> None:
    with deferred():
        for partial, path in zip(partials, paths, strict=True):
            os.replace(partial, path)
            _State.leftovers.pop(
                os.path.dirname(path), None
            )  # a folder that was created here is in use now


def _remove(path: str) -> None:
    if os.path.isdir(path):
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(FileNotFoundError, NotADirectoryError, ValueError):  # a NUL in the name
            os.unlink(path)
    if not os.path.lexists(path):
        _State.leftovers.pop(path, None)


def clean() -> None:
    """Remove files and folders that this process has not finished."""
    for path, process in list(_State.leftovers.items()):
        if process == os.getpid():
            with suppress(OSError):
                _remove(path)


def end(code: int) -> None:
    """Exit with a code; from here on a signal ends the process at once."""
    for number in SIGNALS:
        if signal.getsignal(number) in (signal.default_int_handler, _arrived):
            signal.signal(number, signal.SIG_DFL)
    sys.exit(code)
