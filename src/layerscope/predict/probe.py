"""How fast the machine is just now: a small product, timed between runs.

A processor that others use too, or that a hypervisor hands out, is slower for seconds at a time
though nothing waits. Each run is set against what the probe took around it and at its best.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from layerscope.engines.machine import product_of

SIZE = (384, 384, 384)
TIMES = 5


class Probe:
    """Progress of an engine that is timed before each run and after the last."""

    def __init__(self, threads: int) -> None:
        self._run = product_of("fp32", threads, SIZE)
        self.best_s = float("inf")
        self.seen: list[float] = []
        for _ in range(4):
            self._once()

    def __call__(self, what: str, done: int, of: int) -> None:
        """Called by an engine; only runs are of interest."""
        if what in ("run", "done"):
            self.seen.append(self._once())

    def _once(self) -> float:
        taken = []
        for _ in range(TIMES):
            started = time.perf_counter()
            self._run()
            taken.append(time.perf_counter() - started)
        passed = median(taken)
        self.best_s = min(self.best_s, passed)
        return passed

    def taken(self) -> list[float]:
        """Seconds of the probe around each run of the last engine, before and after it."""
        seen, self.seen = self.seen, []
        return [(before + after) / 2 for before, after in pairwise(seen)]


def settled(times: Sequence[tuple[float, float]], best_s: float) -> float:
    """The median of times, each with the probe's around it, at the speed of the probe's best."""
    return median(seconds / max(around / best_s, 1.0) for seconds, around in times)
