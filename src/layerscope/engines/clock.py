"""Wall and CPU time of this process, and how long its threads waited for a CPU."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from statistics import median, quantiles

from msgspec import Struct


class Sample(Struct, frozen=True):
    """Seconds of one run; `waited_s` is None where the kernel does not tell."""

    wall_s: float
    cpu_s: float
    waited_s: float | None


class Clock:
    """Started before a run and stopped after it."""

    def __init__(self) -> None:
        self._waited = waited_s()
        self._cpu = time.process_time()
        self._wall = time.perf_counter()

    def stop(self) -> Sample:
        """What has passed since."""
        wall = time.perf_counter() - self._wall
        cpu = time.process_time() - self._cpu
        now = waited_s()
        waited = None if now is None or self._waited is None else max(now - self._waited, 0.0)
        return Sample(wall, cpu, waited)


def waited_s() -> float | None:
    """Seconds that the threads of this process were ready to run and had no CPU."""
    total = 0
    try:
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return total / 1e9


def contention(samples: Sequence[Sample], threads: int) -> float:
    """1 where every thread had a CPU whenever it wanted one; 2 where it waited as long as it ran.

    Where the kernel does not tell how long threads waited: wall time of all against CPU time.
    """
    cpu = sum(sample.cpu_s for sample in samples)
    if cpu <= 0:
        return 1.0
    waits = [sample.waited_s for sample in samples]
    known = [wait for wait in waits if wait is not None]
    if len(known) == len(waits):
        return 1 + sum(known) / cpu
    return max(1.0, sum(sample.wall_s for sample in samples) * threads / cpu)


def middle(samples: Sequence[Sample]) -> int:
    """Which sample has the median wall time (the lower one of two)."""
    order = sorted(range(len(samples)), key=lambda n: samples[n].wall_s)
    return order[(len(order) - 1) // 2]


def spread(times: Sequence[float]) -> float:
    """Distance of the quartiles over the median."""
    if len(times) < 2 or not (mid := median(times)):
        return 0.0
    first, _, third = quantiles(times, n=4, method="inclusive")
    return (third - first) / mid
