"""Pin one thread per CPU: two threads of one run on the same CPU would double its time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_pinned: list[list[int]] = []  # CPUs of the calling thread before it was pinned


def cpus() -> list[int]:
    """CPUs this process may use; empty if the system does not report them."""
    if _pinned:
        return _pinned[0]
    try:
        return sorted(os.sched_getaffinity(0))
    except AttributeError:
        return []


@contextmanager
def pinned(threads: int) -> Iterator[None]:
    """Pin the calling thread to the first CPU; worker threads use the next ones."""
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


def worker_affinities(threads: int) -> dict[str, str]:
    """Session options of onnxruntime that pin each worker thread to one of the next CPUs."""
    mine = cpus()
    if not 1 < threads <= len(mine):
        return {}
    affinities = ";".join(str(cpu + 1) for cpu in mine[1:threads])  # onnxruntime counts from 1
    return {"session.intra_op_thread_affinities": affinities}
