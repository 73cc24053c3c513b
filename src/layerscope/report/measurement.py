"""Times measured on an engine, by layer and by run, and the limits of the machine.

Seconds and bytes throughout. The rows of a `Run` are those of the profiled run whose end-to-end
time is the median, so that with the unattributed row they add up to it. A run whose times were read
from a file (`show --times`) has None for what the file does not say.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from math import fsum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from msgspec import Struct

from layerscope.graph.serialize import from_plain
from layerscope.report.results import PlottedResult, TableResult

if TYPE_CHECKING:
    from layerscope.report.types import Report

Kind = Literal["layer", "layout", "unattributed"]
Fusion = Literal["on", "off"]
STORED_AS = {"tf32": "fp32"}  # dtypes of products whose tensors have another


class Rate(Struct, frozen=True):
    """A rate measured several times: the best and the median."""

    best: float
    median: float
    runs: int

    @property
    def spread(self) -> float:
        """Relative distance of the median below the best."""
        return 1 - self.median / self.best if self.best else 0.0


class Peak(Struct, frozen=True):
    """FLOPs per second of matrix products in one dtype, on a number of threads."""

    dtype: str
    threads: int
    flops: Rate
    by: str  # library that computed the product


class Level(Struct, frozen=True):
    """Bytes per second of one memory level, on a number of threads."""

    name: str  # L2, L3, DRAM
    threads: int
    size_bytes: int  # capacity, 0 where unknown
    rate: Rate


Limit = TypeVar("Limit", Peak, Level)


class Machine(TableResult, frozen=True):
    """A processor and its measured limits, or those of its data sheet."""

    printed_by: ClassVar[str] = "machine"

    cpu: str
    cores: int
    peaks: tuple[Peak, ...]
    levels: tuple[Level, ...]
    measured: str = ""  # when, in ISO 8601
    source: str = "measured"

    def peak(self, dtype: str, threads: int) -> Peak | None:
        """The peak in that dtype, at the nearest number of threads not above `threads`."""
        return _nearest([p for p in self.peaks if p.dtype == dtype], threads)

    def level(self, name: str, threads: int) -> Level | None:
        """The level of that name, at the nearest number of threads not above `threads`."""
        return _nearest([each for each in self.levels if each.name == name], threads)


def _nearest(many: list[Limit], threads: int) -> Limit | None:
    below = [each for each in many if each.threads <= threads]
    if below:
        return max(below, key=lambda each: each.threads)
    return min(many, key=lambda each: each.threads, default=None)


class Timing(Struct, frozen=True):
    """End-to-end times. `overhead` is that of profiling, relative to runs without it."""

    end_to_end_s: float | None
    attributed_s: float
    layout_s: float | None  # None: there are no times of rows
    unattributed_s: float | None
    min_s: float | None
    median_s: float | None
    spread: float | None  # (third quartile − first) / median
    cpu_s: float | None  # of the run whose rows are shown
    contention: float | None  # (CPU time + time spent waiting for a CPU) / CPU time
    overhead: float | None
    unprofiled_min_s: float | None
    unprofiled_median_s: float | None
    runs_s: tuple[float, ...]
    unprofiled_s: tuple[float, ...] = ()

    @property
    def attributed(self) -> float | None:
        """Share of the end-to-end time that is attributed to source layers."""
        return self.attributed_s / self.end_to_end_s if self.end_to_end_s else None


class LayerTime(Struct, frozen=True):
    """One row: source layers that the engine ran as one, and their time; None if it is unknown."""

    name: str
    kind: Kind
    layers: tuple[
        str, ...
    ]  # of the source, in its order; of a layout row, the layer whose tensor it converts
    time_s: float | None
    min_s: float | None
    median_s: float | None
    nodes: tuple[str, ...] = ()  # of the engine
    ops: tuple[str, ...] = ()  # engine ops of those nodes
    runs_s: tuple[float, ...] = ()


def total_s(rows: Iterable[LayerTime]) -> float:
    """Sum of the times that are known."""
    return fsum(row.time_s for row in rows if row.time_s is not None)


class MemoryUse(Struct, frozen=True):
    """Peak activation memory: allocated by the engine, and computed by liveness."""

    measured_peak_bytes: int | None
    predicted_peak_bytes: int | None
    source_peak_bytes: int  # of the source graph, without fusion


class Timer(Struct, frozen=True):
    """How often a stage ran, and its total time."""

    tag: str
    count: int
    total_s: float


class Energy(Struct, frozen=True):
    """Joules of one run, and the source of the watts.

    Sources are RAPL counters, `--power`, and a data sheet, whose watts are an upper bound.
    """

    joules: float | None  # None: the end-to-end time is unknown
    watts: float
    source: str
    bound: bool = False  # whether watts and joules are upper bounds


class Run(Struct, frozen=True):
    """Times of the network on one engine."""

    engine: str
    engine_version: str
    threads: int | None
    fusion: Fusion | None
    timing: Timing
    rows: tuple[LayerTime, ...]
    memory: MemoryUse
    timers: tuple[Timer, ...] = ()
    energy: Energy | None = None
    removed: tuple[str, ...] = ()  # source layers without a time: folded or removed by the engine
    notes: tuple[str, ...] = ()
    complete: bool = True
    code: int = 0  # exit code of the command where it is not complete
    difference: float | None = None  # of its outputs from the first engine's, relative

    @property
    def times(self) -> dict[str, float]:
        """Seconds by the first layer of each row."""
        return {
            row.layers[0]: row.time_s
            for row in self.rows
            if row.kind == "layer" and row.time_s is not None
        }


class Measurement(TableResult, PlottedResult, frozen=True, dict=True):
    """All measurements of a network, as `-o run.json` stores them."""

    printed_by: ClassVar[str] = "measured"
    plotted_by: ClassVar[str] = "plot_run"

    network: str
    graph: dict[str, Any]
    batch: int
    dtype: str
    runs: tuple[Run, ...]
    machine: Machine | None
    version: str
    measured: str
    kind: str = "run"
    failures: tuple[str, ...] = ()  # engines without a result, and why

    @cached_property
    def report(self) -> Report:
        """The report of the network that was measured."""
        from layerscope.report.build import report_of

        return report_of(from_plain(self.graph))
