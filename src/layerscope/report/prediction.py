"""Predicted times of layers, with an error interval, by a fitted model."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from layerscope.graph.edits import token_inputs
from layerscope.graph.types import Graph
from layerscope.report.measurement import Energy
from layerscope.report.results import PlottedResult, TableResult
from layerscope.report.types import Report

Item = Literal["images", "tokens", "inputs"]
IMAGE_AXES = 4  # of a batch of images


class LayerGuess(Struct, frozen=True):
    """One row: layers that are expected to run as one, with their time and its error."""

    name: str
    layers: tuple[str, ...]
    kind: str
    time_s: float | None  # None: the model has no data for the operator
    error: float | None  # relative, 68 % interval


class Prediction(TableResult, PlottedResult, frozen=True):
    """Rows and their sum. `error` is relative, from networks that the model was not fitted on."""

    printed_by: ClassVar[str] = "predicted"
    plotted_by: ClassVar[str] = "plot_prediction"

    network: str
    machine: str
    engine: str
    batch: int
    dtype: str
    rows: tuple[LayerGuess, ...]
    total_s: float  # of the rows that have a time
    error: float
    source: str  # data that the model was fitted on
    version: str
    peak_bytes: int
    notes: tuple[str, ...] = ()
    power_w: float | None = None  # upper bound of the machine's data sheet
    floor_s: float = 0.0  # least time: operations at the peak, or weights from DRAM
    peak_is_bound: bool = False  # memory of unknown layers is missing from the peak
    graph: Graph | None = None  # the network, so that a prediction in a file can be read back
    items: int = 0  # that one pass reads; 0: the batch
    item: Item = "images"  # what they are

    @property
    def unknown(self) -> dict[str, int]:
        """Rows without a time, by kind."""
        found: dict[str, int] = {}
        for row in self.rows:
            if row.time_s is None:
                found[row.kind] = found.get(row.kind, 0) + 1
        return found

    @property
    def is_lower_bound(self) -> bool:
        """Whether rows without a time are missing from the sum."""
        return bool(self.unknown)

    @property
    def low_s(self) -> float:
        """Lower end of the interval, at least `floor_s`."""
        return max(self.total_s / (1 + self.error), self.floor_s)

    @property
    def high_s(self) -> float | None:
        """Upper end of the interval; None where the sum is a lower bound."""
        return None if self.is_lower_bound else self.total_s * (1 + self.error)

    @property
    def energy(self) -> Energy | None:
        """At most the watts of the data sheet for the upper end of the interval."""
        if self.power_w is None:
            return None
        joules = None if self.high_s is None else self.power_w * self.high_s
        return Energy(joules, self.power_w, f"the data sheet of {self.machine}", bound=True)

    @property
    def items_per_s(self) -> float | None:
        """Items divided by the sum; an upper bound where the sum is a lower bound."""
        return (self.items or self.batch) / self.total_s if self.total_s else None

    @property
    def images_per_s(self) -> float | None:
        """Images per second; None for a network that reads something else."""
        return self.items_per_s if self.item == "images" else None


def items_of(report: Report) -> tuple[int, Item]:
    """What one pass of a network reads: tokens, images, or inputs of another kind."""
    inputs = [tensor for tensor in report.inputs if tensor.name not in report.graph.cache]
    tokens = [tensor for tensor in token_inputs(report.graph) if tensor in inputs]
    others = [len(t.shape or ()) for t in inputs if t not in tokens]
    if tokens and IMAGE_AXES not in others:
        return tokens[0].elements, "tokens"
    if not tokens and (report.graph.batch or others[:1] == [IMAGE_AXES]):
        return report.batch, "images"
    return report.batch, "inputs"
