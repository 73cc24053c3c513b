"""Signals, and what must not be left behind when one arrives: partial files, temporary folders.

The first SIGINT, SIGTERM or SIGHUP raises KeyboardInterrupt; the second ends the process at once.
Names of files and folders are noted before they are created, so that `clean` finds them whenever a
signal arrives.
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

DEFERRED_S = 1.5  # for which an import or a callback is not cut
RETRY_S = 0.02
CODE = 128  # a shell's exit code of a signal, less the number of the signal
SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class _State:
    received: int | None = None  # the first signal
    pending = False  # it has not been handled yet: what it raised may have been swallowed
    since = 0.0  # when it came
    held = 0  # depth of `held`
    callbacks: set[CodeType] = set()  # noqa: RUF012  functions that C code calls
    leftovers: dict[str, int] = {}  # noqa: RUF012  path -> the process that creates it


def received() -> int | None:
    """The exit code of the signal that has arrived, None without one."""
    return None if _State.received is None else CODE + _State.received


def check() -> None:
    """Raise KeyboardInterrupt again where C code has swallowed the one of a signal."""
    if _State.pending and not _State.held:
        _State.pending = False
        raise KeyboardInterrupt


def acknowledge() -> None:
    """Say that the interrupt is handled: what was measured so far is still to be printed."""
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
    """Raise, or try again soon where C code is above that does not expect an exception."""
    if _State.held:
        return
    if _is_safe(frame) or time.monotonic() - _State.since > DEFERRED_S:
        raise KeyboardInterrupt
    signal.setitimer(signal.ITIMER_REAL, RETRY_S)


def _is_safe(frame: FrameType | None) -> bool:
    """Whether no import is under way, as libraries crash in one that is cut, and no callback."""
    if not hasattr(signal, "setitimer"):
        return True
    while frame is not None:
        code = frame.f_code
        if code in _State.callbacks or code.co_filename.startswith("<frozen importlib"):
            return False
        frame = frame.f_back
    return True


def defer_in(function: object) -> None:
    """Raise nothing in a function that C code calls, where it would be lost."""
    code = getattr(function, "__code__", None)
    if code is not None:
        _State.callbacks.add(code)


@contextmanager
def handlers() -> Iterator[None]:
    """Handle signals, and clean up after whatever happens; ignored signals stay ignored."""
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


@contextmanager
def held() -> Iterator[None]:
    """Steps that belong together: a signal waits for the last of them."""
    _State.held += 1
    try:
        yield
    finally:
        _State.held -= 1
    check()


@contextmanager
def scratch_folder() -> Iterator[str]:
    """A temporary folder for this process alone, removed with all that is in it."""
    from secrets import token_hex
    from tempfile import gettempdir

    path = os.path.join(gettempdir(), f"layerscope-{os.getpid()}-{token_hex(6)}")
    _State.leftovers[path] = os.getpid()
    try:
        os.mkdir(path, 0o700)
        yield path
    finally:
        _remove(path)


@contextmanager
def whole_files(*paths: str) -> Iterator[list[BinaryIO]]:
    """Files that take their names together once all are whole, or are not there at all."""
    partials = [_partial(path) for path in paths]
    try:
        with ExitStack() as stack:
            yield [stack.enter_context(open(partial, "wb")) for partial in partials]
        _rename(partials, paths)
    finally:
        for partial in partials:
            _remove(partial)


def write_files(contents: dict[str, bytes], folder: str) -> None:
    """Write any number of files into a folder, all of them or none; it is created if it must be."""
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
    """A free name beside the file, noted before it is created."""
    from secrets import token_hex

    folder = os.path.dirname(os.path.abspath(path))
    partial = os.path.join(folder, f".layerscope-{os.getpid()}-{token_hex(6)}.partial")
    _State.leftovers[partial] = os.getpid()
    return partial


def _rename(partials: Sequence[str], paths: Sequence[str]) -> None:
    with held():
        for partial, path in zip(partials, paths, strict=True):
            os.replace(partial, path)
            _State.leftovers.pop(os.path.dirname(path), None)  # a folder of ours is in use now


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
    """Remove what this process has begun to write and not finished."""
    for path, process in list(_State.leftovers.items()):
        if process == os.getpid():
            with suppress(OSError):
                _remove(path)


def end(code: int) -> None:
    """Leave with an exit code; a signal that arrives from here on just ends the process."""
    for number in SIGNALS:
        if signal.getsignal(number) in (signal.default_int_handler, _arrived):
            signal.signal(number, signal.SIG_DFL)
    sys.exit(code)
