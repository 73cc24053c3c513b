"""How fast the machine is just now: a small product, timed between runs.

A processor that others use too, or that a hypervisor hands out, is slower for seconds at a time
though nothing waits. Runs count that had the machine at full speed before and after; where there
are too few of those, times are set against what the probe took at its best.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from layerscope.engines.machine import product_of

SIZE = (384, 384, 384)
TIMES = 5
FULL = 1.12  # of the probe's best time: the machine is at full speed
LEAST = 3  # runs at full speed that are enough

Around = tuple[float, float]  # what the probe took before and after a run, the lesser first


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

    def taken(self) -> list[Around]:
        """Seconds of the probe around each run of the last engine."""
        seen, self.seen = self.seen, []
        return [(min(pair), max(pair)) for pair in pairwise(seen)]


def at_full_speed(times: Sequence[tuple[float, Around]], best_s: float) -> list[float]:
    """Times of runs that had the whole machine before and after."""
    return [seconds for seconds, (_, most) in times if most <= FULL * best_s]


def settled(times: Sequence[tuple[float, Around]], best_s: float) -> float:
    """The median of times at full speed; where these are too few, what a quarter of all is below.

    Those are scaled by how slow the probe was beside them; what it did not see only adds to them.
    """
    quick = at_full_speed(times, best_s)
    if len(quick) >= LEAST:
        return median(quick)
    scaled = sorted(seconds / max(least / best_s, 1.0) for seconds, (least, _) in times)
    return scaled[len(scaled) // 4]
