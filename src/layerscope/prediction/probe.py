"""How fast the machine is just now: a small product, timed between runs.

A processor that others use too, or that a hypervisor hands out, is slower for seconds at a time
though nothing waits. Each run is set against what the probe took around it and at its best.
Networks suffer less from that than a small product does; by how much less is seen where the same
ones run at several speeds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from math import log
from statistics import mean, median

from msgspec import Struct

from layerscope.engines.machine import product_of

SIZE = (384, 384, 384)
TIMES = 5
ALIKE = 1e-3  # variance of the probe's logarithm below which nothing is learned of it


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


class Speed(Struct, frozen=True):
    """What the probe took at its best, and the power of its slowdown that networks share."""

    best_s: float
    share: float = 1.0

    def settled(self, times: Sequence[tuple[float, float]]) -> float:
        """The median of times, each with the probe's around it, at full speed."""
        return float(median([
            seconds / pow(max(around / self.best_s, 1.0), self.share) for seconds, around in times
        ]))  # fmt: skip


def share_of(passes: Sequence[Sequence[tuple[float, float]]], best_s: float) -> float:
    """The slope of time over the probe's, in logarithms, among passes of the same network."""
    both = squared = 0.0
    for each in passes:
        times = [log(seconds) for seconds, _ in each]
        slow = [log(max(around / best_s, 1.0)) for _, around in each]
        for time_, slowed in zip(times, slow, strict=True):
            both += (slowed - mean(slow)) * (time_ - mean(times))
            squared += (slowed - mean(slow)) ** 2
    if squared < ALIKE * len(passes):
        return 1.0  # the machine was as fast all the time
    return min(max(both / squared, 0.0), 1.0)
