"""Here, on this machine: a prediction from its own micro-benchmarks."""

from __future__ import annotations

from math import sqrt

from layerscope.errors import UsageError
from layerscope.prediction.calibration import known, readers_of
from layerscope.prediction.fusing import rows_of
from layerscope.prediction.layout import layouts_of
from layerscope.prediction.nearest import Model
from layerscope.prediction.row_features import reorder_of, work_of
from layerscope.report import Report
from layerscope.report.prediction import LayerGuess, Prediction
from layerscope.version import __version__


def predict_here(report: Report, name: str, threads: int) -> Prediction:
    """Seconds of every row on this machine."""
    found = known(name, threads)
    if found is None:
        raise UsageError(
            f"no calibration of {name} on {threads} threads of this processor; "
            "`layerscope machine --calibrate` makes one in some minutes"
        )
    rows = guesses(report, found.model(), found.block)
    rows.append(LayerGuess("before and after", (), "overhead", found.around_s, 0.5))
    notes = []
    if found.contention > 1.05:
        notes.append(f"calibrated under contention {found.contention:.2f}; do it again when quiet")
    return Prediction(
        network=report.name,
        machine=found.cpu,
        engine=f"{found.engine} {found.engine_version}, {threads} threads",
        batch=report.batch,
        dtype=report.dtype,
        rows=tuple(rows),
        total_s=sum(row.time_s for row in rows),
        error=_together(rows, found.model().total_error),
        source=f"{len(found.samples)} layers of micro-networks, {found.measured}",
        version=__version__,
        peak_bytes=report.memory.peak_bytes,
        notes=tuple(notes),
    )


def guesses(report: Report, model: Model, block: int) -> list[LayerGuess]:
    """A guess a row; that of a change of layout is in the row whose output it is of."""
    readers = readers_of(report)
    rows = rows_of(report)
    layouts = layouts_of(report, rows, block)
    made = []
    for row in rows:
        work = work_of(row, report, readers, layouts)
        seconds, error = model.guess(work)
        names = tuple(layer.name for layer in row)
        moved = [size for name in names for size in layouts.reordered.get(name, ())]
        if moved:
            more, off = model.guess(reorder_of(moved, names[-1] in layouts.blocked))
            error = (seconds * error + more * off) / (seconds + more)
            seconds += more
        made.append(LayerGuess(" + ".join(names), names, work.kind, seconds, error))
    return made


def _together(rows: list[LayerGuess], shared: float) -> float:
    """Errors of rows that go either way, and the one that micro-networks as wholes had."""
    total = sum(row.time_s for row in rows)
    apart = sqrt(sum((row.time_s * row.error) ** 2 for row in rows)) / total if total else 0.0
    return sqrt(apart**2 + shared**2)
