"""Predict times on this machine from its own micro-benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt

from layerscope.errors import UsageError
from layerscope.prediction.calibration import Calibration, cached_calibration
from layerscope.prediction.floors import Floors, rest_of_weights
from layerscope.prediction.fusion import fused_rows
from layerscope.prediction.layout import layouts_of
from layerscope.prediction.row_features import reorder_of, work_of
from layerscope.prediction.row_times import readers_of
from layerscope.report import Report
from layerscope.report.prediction import LayerGuess, Prediction, items_of
from layerscope.version import __version__

CALIBRATED = ("fp32",)  # dtypes that the micro-benchmarks measure


def check_dtype(dtype: str | None) -> None:
    """Raise for a dtype that calibration does not measure."""
    if dtype is not None and dtype not in CALIBRATED:
        raise UsageError(
            f"dtype {dtype}: calibration of this machine does not measure it; "
            f"known: {', '.join(CALIBRATED)}"
        )


def predict_here(report: Report, name: str, threads: int) -> Prediction:
    """Seconds of every row on this machine."""
    found = cached_calibration(name, threads)
    if found is None:
        raise UsageError(
            f"no calibration of {name} on {threads} threads of this processor; "
            "`layerscope machine --calibrate` makes one in some minutes"
        )
    floors = Floors(report, found.limits)
    rows = guesses(report, found, floors)
    rows.append(LayerGuess("around layers", (), "overhead", overhead(rows, found), 0.5))
    rows += rest_of_weights(rows, floors, 0.5)
    notes = []
    if found.contention > 1.05:
        notes.append(f"calibrated under contention {found.contention:.2f}; do it again when quiet")
    items, item = items_of(report)
    return Prediction(
        network=report.name,
        graph=report.graph,
        machine=found.cpu,
        engine=f"{found.engine} {found.engine_version}, {threads} threads",
        batch=report.batch,
        dtype=report.float_dtype,
        rows=tuple(rows),
        total_s=fsum(row.time_s or 0.0 for row in rows),
        error=_together(rows, found.model().total_error),
        source=f"{len(found.samples)} layers of micro-networks, {found.measured}",
        version=__version__,
        peak_bytes=report.memory.peak_bytes,
        peak_is_bound="peak_activation_bytes" in report.lower_bounds,
        notes=tuple(notes),
        floor_s=floors.total,
        items=items,
        item=item,
    )


def guesses(report: Report, found: Calibration, floors: Floors) -> list[LayerGuess]:
    """One guess per row; a layout change counts in the row that produces the tensor."""
    model = found.model()
    readers = readers_of(report)
    rows = fused_rows(report, found.rules)
    layouts = layouts_of(report, rows, found.rules)
    rows_guessed = []
    for row in rows:
        names = tuple(layer.name for layer in row)
        if any(layer.status == "unknown" and layer.node.times for layer in row):
            kinds = " + ".join(layer.op for layer in row)
            rows_guessed.append(LayerGuess(" + ".join(names), names, kinds, None, None))
            continue
        work = work_of(row, report, readers, layouts)
        seconds, error = model.guess(work)
        moved = [size for name in names for size in layouts.reordered.get(name, ())]
        if moved:
            more, off = model.guess(reorder_of(moved, names[-1] in layouts.blocked))
            error = (seconds * error + more * off) / (seconds + more)
            seconds += more
        seconds = max(seconds, floors.row(names))
        rows_guessed.append(LayerGuess(" + ".join(names), names, work.kind, seconds, error))
    return rows_guessed


def overhead(rows: Sequence[LayerGuess], found: Calibration) -> float:
    """Seconds of a run that are in no row."""
    return found.around_s + (found.together - 1) * fsum(row.time_s or 0.0 for row in rows)


def _together(rows: list[LayerGuess], shared: float) -> float:
    """Relative error of the sum: independent errors of rows, and the error shared by all."""
    guessed = [(row.time_s, row.error) for row in rows if row.time_s and row.error is not None]
    total = sum(seconds for seconds, _ in guessed)
    squares = sum((seconds * error) ** 2 for seconds, error in guessed)
    apart = sqrt(squares) / total if total else 0.0
    return sqrt(apart**2 + shared**2)
