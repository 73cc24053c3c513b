"""Predicted times of a language model: reading a prompt, generating tokens, batch by batch."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from layerscope.report.results import PlottedResult, TableResult

Roof = Literal["memory", "compute"]


class LayerStep(Struct, frozen=True):
    """Seconds of a layer in a step, their lower bound, and the limit that sets this bound."""

    name: str
    kind: str
    time_s: float
    floor_s: float
    roof: Roof


class StepPrediction(Struct, frozen=True, kw_only=True):
    """One step: new tokens of each sequence after tokens in the cache."""

    phase: Literal["prefill", "decode"]
    tokens: int
    past: int
    batch: int
    rows: tuple[LayerStep, ...]
    error: float  # relative: 68 % interval

    @property
    def total_s(self) -> float:
        """Seconds of the step."""
        return sum(row.time_s for row in self.rows)

    @property
    def floor_s(self) -> float:
        """The least seconds of the step: bytes at full bandwidth, or operations at the peak."""
        return sum(row.floor_s for row in self.rows)

    @property
    def low_s(self) -> float:
        """Lower end of the interval, at least `floor_s`."""
        return max(self.total_s / (1 + self.error), self.floor_s)

    @property
    def high_s(self) -> float:
        """Upper end of the interval."""
        return self.total_s * (1 + self.error)

    @property
    def tokens_per_s(self) -> float:
        """New tokens of all sequences per second."""
        return self.tokens * self.batch / self.total_s


class GenerationTimes(TableResult, PlottedResult, frozen=True, kw_only=True):
    """Predicted steps of a language model on one machine, in order."""

    printed_by: ClassVar[str] = "generation"
    plotted_by: ClassVar[str] = "plot_generation"

    network: str
    machine: str
    weights: str  # format
    cache: str
    steps: tuple[StepPrediction, ...]
    source: str
    version: str
    notes: tuple[str, ...] = ()
