"""What layers would take: seconds with a band, by a model that says what it was fitted on."""

from __future__ import annotations

from msgspec import Struct


class LayerGuess(Struct, frozen=True):
    """One row: layers that would run as one, and how far off the time may be either way."""

    name: str
    layers: tuple[str, ...]
    kind: str
    time_s: float
    error: float  # relative; two of three layers lie within it


class Prediction(Struct, frozen=True):
    """Rows and their sum. `error` is relative, as found on networks that were not fitted."""

    network: str
    machine: str
    engine: str
    batch: int
    dtype: str
    rows: tuple[LayerGuess, ...]
    total_s: float
    error: float
    source: str  # what the model was fitted on
    version: str
    peak_bytes: int
    notes: tuple[str, ...] = ()

    @property
    def low_s(self) -> float:
        """The lower end of the band."""
        return self.total_s / (1 + self.error)

    @property
    def high_s(self) -> float:
        """The upper end of the band."""
        return self.total_s * (1 + self.error)
