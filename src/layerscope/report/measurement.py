"""What an engine took: rows that add up to a run, every run, the machine's limits beside them.

Seconds and bytes throughout. The rows of a `Run` are those of the profiled run whose end-to-end
time is the median, so that with the unattributed row they add up to it.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Kind = Literal["layer", "layout", "unattributed"]
Fusion = Literal["on", "off"]


class Rate(Struct, frozen=True):
    """A limit that was measured several times: the best, the median, their relative distance."""

    best: float
    median: float
    runs: int

    @property
    def spread(self) -> float:
        """How far the median lies under the best."""
        return 1 - self.median / self.best if self.best else 0.0


class Peak(Struct, frozen=True):
    """Operations a second of matrix products in one number type on so many threads."""

    dtype: str
    threads: int
    flops: Rate
    by: str  # whose product it is


class Level(Struct, frozen=True):
    """Bytes a second that a level of memory gives to so many threads."""

    name: str  # L2, L3, DRAM
    threads: int
    size_bytes: int  # what it holds, 0 where nobody tells
    rate: Rate


class Machine(Struct, frozen=True):
    """A processor and its roofs."""

    cpu: str
    cores: int
    peaks: tuple[Peak, ...]
    levels: tuple[Level, ...]
    measured: str = ""  # when, in ISO 8601
    source: str = "measured"

    def peak(self, dtype: str, threads: int) -> Peak | None:
        """The peak of that number type at the nearest number of threads not above it."""
        found: Peak | None = _nearest([p for p in self.peaks if p.dtype == dtype], threads)
        return found

    def level(self, name: str, threads: int) -> Level | None:
        """The level of that name at the nearest number of threads not above it."""
        found: Level | None = _nearest([each for each in self.levels if each.name == name], threads)
        return found


def _nearest(many: list[Any], threads: int) -> Any:
    below = [each for each in many if each.threads <= threads]
    if below:
        return max(below, key=lambda each: each.threads)
    return min(many, key=lambda each: each.threads, default=None)


class Timing(Struct, frozen=True):
    """End-to-end times. `overhead` is that of profiling, against runs without it."""

    end_to_end_s: float
    attributed_s: float
    layout_s: float
    unattributed_s: float
    min_s: float
    median_s: float
    spread: float  # (third quartile − first) / median
    cpu_s: float  # of the run the rows are of
    contention: float  # (CPU time + time spent waiting for a CPU) / CPU time
    overhead: float | None
    unprofiled_min_s: float | None
    unprofiled_median_s: float | None
    runs_s: tuple[float, ...]
    unprofiled_s: tuple[float, ...] = ()

    @property
    def attributed(self) -> float:
        """Share of the end-to-end time that source layers have."""
        return self.attributed_s / self.end_to_end_s if self.end_to_end_s else 0.0


class LayerTime(Struct, frozen=True):
    """One row: the source layers that the engine ran as one, and what that took."""

    name: str
    kind: Kind
    layers: tuple[str, ...]  # of the source, in its order; of a layout row, whose tensor it is
    time_s: float
    min_s: float
    median_s: float
    nodes: tuple[str, ...] = ()  # of the engine
    ops: tuple[str, ...] = ()  # kinds of those
    runs_s: tuple[float, ...] = ()


class MemoryUse(Struct, frozen=True):
    """Activation memory: what the engine asked for at most, and what liveness says it must."""

    measured_peak_bytes: int | None
    predicted_peak_bytes: int | None
    source_peak_bytes: int  # of the source graph, nothing fused


class Timer(Struct, frozen=True):
    """How often a stage ran, and how long in all."""

    tag: str
    count: int
    total_s: float


class Energy(Struct, frozen=True):
    """Joules of one run, and where the watts are from: assumed, rapl, nvml."""

    joules: float
    watts: float
    source: str


class Run(Struct, frozen=True):
    """One engine's account of the network."""

    engine: str
    engine_version: str
    threads: int
    fusion: Fusion
    timing: Timing
    rows: tuple[LayerTime, ...]
    memory: MemoryUse
    timers: tuple[Timer, ...] = ()
    energy: Energy | None = None
    removed: tuple[str, ...] = ()  # source layers that take no time: folded or dropped
    notes: tuple[str, ...] = ()
    complete: bool = True
    code: int = 0  # what the command leaves with where it is not complete
    difference: float | None = None  # of its outputs from those of the first engine, relative

    @property
    def times(self) -> dict[str, float]:
        """Seconds by the first layer of each row."""
        return {row.layers[0]: row.time_s for row in self.rows if row.kind == "layer"}


class Measurement(Struct, frozen=True):
    """All that was measured of a network: what `-o run.json` keeps."""

    network: str
    graph: dict[str, Any]
    batch: int
    dtype: str
    runs: tuple[Run, ...]
    machine: Machine | None
    version: str
    measured: str
    kind: str = "layerscope measurement"
    failures: tuple[str, ...] = ()  # engines that gave nothing, and why
