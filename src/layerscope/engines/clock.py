"""Wall and CPU time of this process, how long its threads waited for a CPU, and energy."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from statistics import median, quantiles

from msgspec import Struct

from layerscope.engines.energy import read_counters, zones_of


class RunSample(Struct, frozen=True):
    """Seconds and joules of one run; None if the kernel does not report them."""

    wall_s: float
    cpu_s: float
    waited_s: float | None
    joules: float | None = None


class Clock:
    """Wall and CPU time and energy since it was created."""

    def __init__(self) -> None:
        self._zones = zones_of()
        self._counters = read_counters(self._zones)
        self._waited = waited_s()
        self._cpu = time.process_time()
        self._wall = time.perf_counter()

    def stop(self) -> RunSample:
        """Seconds since the clock was created."""
        wall = time.perf_counter() - self._wall
        cpu = time.process_time() - self._cpu
        now = waited_s()
        waited = None if now is None or self._waited is None else max(now - self._waited, 0.0)
        counters = read_counters(self._zones)
        return RunSample(wall, cpu, waited, self._counters.joules_until(counters, self._zones))


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


def contention(samples: Sequence[RunSample], threads: int) -> float:
    """1 if every thread always had a CPU; 2 if threads waited for one as long as they ran.

    If the kernel does not report waiting, it is the wall time of all threads over their CPU time.
    """
    cpu = sum(sample.cpu_s for sample in samples)
    if cpu <= 0:
        return 1.0
    waits = [sample.waited_s for sample in samples]
    reported = [wait for wait in waits if wait is not None]
    if len(reported) == len(waits):
        return 1 + sum(reported) / cpu
    return max(1.0, sum(sample.wall_s for sample in samples) * threads / cpu)


def middle(samples: Sequence[RunSample]) -> int:
    """Index of the sample with the median wall time (the lower of two)."""
    order = sorted(range(len(samples)), key=lambda n: samples[n].wall_s)
    return order[(len(order) - 1) // 2]


def spread(times: Sequence[float]) -> float:
    """Interquartile range over the median."""
    if len(times) < 2 or not (mid := median(times)):
        return 0.0
    first, _, third = quantiles(times, n=4, method="inclusive")
    return (third - first) / mid
