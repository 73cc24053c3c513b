"""A progress bar on stderr, only on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from layerscope.escaping import visible
from layerscope.interrupts import check

WIDTH = 24


def bar() -> Callable[[str, int, int], None]:
    """A function to call with the current step, steps done and total; raises after a signal."""
    stream = sys.stderr
    if stream is None or not stream.isatty() or os.environ.get("TERM") == "dumb":
        return lambda what, done, of: check() if done < of else None

    def show(what: str, done: int, of: int) -> None:
        if done < of:
            check()
        if done >= of:
            stream.write("\r\x1b[K")
        else:
            full = WIDTH * done // max(of, 1)
            stream.write(
                f"\r\x1b[K[{'█' * full}{'·' * (WIDTH - full)}] {done}/{of} {visible(what)}"
            )
        stream.flush()

    return show
