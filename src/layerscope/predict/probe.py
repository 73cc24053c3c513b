"""How fast the machine is just now: a small product, timed between runs.

A processor that others use too, or that a hypervisor hands out, is slower for seconds at a time
though nothing waits. Times count only where the probe took about as long as at its best.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

from layerscope.engines.machine import product_of

SIZE = (256, 256, 256)
TIMES = 3
STEADY = 1.06  # of the best: as quick as it gets
ENOUGH = 3


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
        """Seconds of the probe at each run of the last engine: the longer of before and after."""
        seen, self.seen = self.seen, []
        return [max(pair) for pair in pairwise(seen)]


def settled(times: Sequence[tuple[float, float]], best_s: float) -> float:
    """The first quartile of times beside which the probe was quick.

    Where it never was, the quarter with the quickest, scaled by how slow the probe was there.
    """
    quick = sorted(seconds for seconds, probe in times if probe <= best_s * STEADY)
    if len(quick) >= ENOUGH:
        return quick[(len(quick) - 1) // 4]
    ordered = sorted(times, key=lambda pair: pair[1])[: max(len(times) // 4, 1)]
    scaled = sorted(seconds / max(probe / best_s / STEADY, 1.0) for seconds, probe in ordered)
    return scaled[(len(scaled) - 1) // 4]
