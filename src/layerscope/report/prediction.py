"""What layers would take: seconds with a band, by a model that says what it was fitted on."""

from __future__ import annotations

from msgspec import Struct


class LayerGuess(Struct, frozen=True):
    """One row: layers that would run as one, and how far off the time may be either way."""

    name: str
    layers: tuple[str, ...]
    kind: str
    time_s: float | None  # None: an operator that nothing is known of
    error: float | None  # relative; two of three layers lie within it


class Prediction(Struct, frozen=True):
    """Rows and their sum. `error` is relative, as found on networks that were not fitted."""

    network: str
    machine: str
    engine: str
    batch: int
    dtype: str
    rows: tuple[LayerGuess, ...]
    total_s: float  # of the rows that have a time
    error: float
    source: str  # what the model was fitted on
    version: str
    peak_bytes: int
    notes: tuple[str, ...] = ()
    floor_s: float = 0.0  # what operations at the peak or weights from DRAM take at least

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
        """The lower end of the band, which is no less than the machine can do."""
        return max(self.total_s / (1 + self.error), self.floor_s)

    @property
    def high_s(self) -> float | None:
        """The upper end of the band; None where the sum is a lower bound."""
        return None if self.is_lower_bound else self.total_s * (1 + self.error)

    @property
    def images_per_s(self) -> float | None:
        """The batch over the sum, an upper bound where that is a lower one."""
        return self.batch / self.total_s if self.total_s else None
