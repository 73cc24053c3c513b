"""Measured times of a language model on this machine: reading a prompt, generating tokens."""

from __future__ import annotations

from statistics import median
from typing import ClassVar, Literal

from msgspec import Struct

from layerscope.report.results import TableResult


class MeasuredStep(Struct, frozen=True, kw_only=True):
    """One step, run several times: new tokens of each sequence after tokens in the cache."""

    engine: str
    engine_version: str
    phase: Literal["prefill", "decode"]
    tokens: int
    past: int
    batch: int
    runs_s: tuple[float, ...]
    contention: float | None  # (CPU time + time spent waiting for a CPU) / CPU time
    cache_bytes: int | None = None  # that the cache object has before the first timed run
    expected_cache_bytes: int | None = None  # of the same, counted from the configuration

    @property
    def median_s(self) -> float:
        """Seconds of the step."""
        return median(self.runs_s)

    @property
    def min_s(self) -> float:
        """Seconds of the fastest run."""
        return min(self.runs_s)

    @property
    def max_s(self) -> float:
        """Seconds of the slowest run."""
        return max(self.runs_s)

    @property
    def tokens_per_s(self) -> float:
        """New tokens of all sequences per second."""
        return self.tokens * self.batch / self.median_s


class GenerationRuns(TableResult, frozen=True, kw_only=True):
    """Measured steps of a language model on this machine, by engine."""

    printed_by: ClassVar[str] = "generation_runs"

    network: str
    machine: str
    params: int
    dtype: str
    threads: int
    steps: tuple[MeasuredStep, ...]
    version: str
    measured: str  # when, in ISO 8601
    notes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()  # engines without a result, and why
    code: int = 0  # exit code of the command where it is not complete
