"""A CPU a thread: a scheduler that puts two threads of one run on one CPU doubles its time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_pinned: list[list[int]] = []  # what the calling thread might use before it was pinned


def cpus() -> list[int]:
    """CPUs this process may use; none where the system does not tell."""
    if _pinned:
        return _pinned[0]
    try:
        return sorted(os.sched_getaffinity(0))
    except AttributeError:
        return []


@contextmanager
def pinned(threads: int) -> Iterator[None]:
    """Keep the calling thread on the first CPU while others of this process use the next ones."""
    mine = cpus()
    if not 1 <= threads <= len(mine):
        yield
        return
    os.sched_setaffinity(0, mine[:1])
    _pinned.append(mine)
    try:
        yield
    finally:
        _pinned.pop()
        os.sched_setaffinity(0, mine)


def worker_places(threads: int) -> dict[str, str]:
    """What to tell onnxruntime for its further threads to go to the next CPUs, one on each."""
    mine = cpus()
    if not 1 < threads <= len(mine):
        return {}
    places = ";".join(str(cpu + 1) for cpu in mine[1:threads])  # it counts from 1
    return {"session.intra_op_thread_affinities": places}
