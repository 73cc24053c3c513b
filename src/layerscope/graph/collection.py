"""Python's search for garbage, put off while many small values are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Look for no garbage in this block: there is none, and looking takes longer than the work."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            _with_the_old()
            gc.enable()


def _with_the_old() -> None:
    """Let what was made count as old, or all of it is searched at once, as soon as that is on."""
    if not gc.get_freeze_count():  # what somebody froze stays so
        gc.freeze()
        gc.unfreeze()
