"""How fast the machine is just now: a small product, timed between runs.

A processor that others use too, or that a hypervisor hands out, is slower for seconds at a time
though nothing waits. Times are set against what the probe took at its best.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from layerscope.engines.machine import product_of

SIZE = (256, 256, 256)
TIMES = 3


class Probe:
    """Progress of an engine that is timed before each run and after the last."""

    def __init__(self, threads: int) -> None:
        self._run = product_of("fp32", threads, SIZE)
        self.best_s = float("inf")
        self.seen: list[float] = []
        for _ in range(10):
            self._once()

    def __call__(self, what: str, done: int, of: int) -> None:
        """Called by an engine; only runs are of interest."""
        if what in ("run", "done"):
            self.seen.append(min(self._once() for _ in range(TIMES)))

    def _once(self) -> float:
        started = time.perf_counter()
        self._run()
        passed = time.perf_counter() - started
        self.best_s = min(self.best_s, passed)
        return passed

    def taken(self) -> list[float]:
        """Seconds of the probe at each run of the last engine: the lesser of before and after."""
        seen, self.seen = self.seen, []
        return [min(pair) for pair in pairwise(seen)]


def settled(times: Sequence[tuple[float, float]], best_s: float) -> float:
    """The median of times, each scaled by how slow the probe was beside it."""
    return median(seconds / max(probe / best_s, 1.0) for seconds, probe in times)
