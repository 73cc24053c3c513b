"""Sentences on training memory and on the largest batch that fits."""

from __future__ import annotations

from typing import ClassVar

from layerscope.analysis.training import Training
from layerscope.report.numbers import at_least, bytes_text
from layerscope.report.results import TableResult


def training_line(training: Training, batch: int) -> str:
    """The bytes of a training step, in total and by use."""
    parts = {
        "weights": training.weights_bytes,
        "half-precision copy": training.half_copy_bytes,
        "gradients": training.gradient_bytes,
        "optimizer state": training.state_bytes,
        "kept activations": training.kept_bytes,
        "working gradients": training.working_bytes,
    }
    uses = " + ".join(f"{name} {bytes_text(size)}" for name, size in parts.items() if size)
    least = "" if training.complete else "at least "
    again = f", {training.checkpoints} checkpoints" if training.checkpoints else ""
    total = bytes_text(training.total_bytes)
    where = ""
    if training.zero_stage:
        where = f", each of {training.devices} devices under ZeRO {training.zero_stage}"
    adapters = f" adapters of rank {training.lora}" if training.lora else ""
    line = f"Training{adapters} with {training.optimizer}, batch {batch}{again}{where}: "
    line += f"{least}{total} = {uses}."
    return f"{line} {_kept_text(training)}"


def _kept_text(training: Training) -> str:
    """Whether kept_bytes is exact, and if not, why."""
    if training.kept_status == "exact":
        return "Kept activations are exact: what PyTorch's autograd saves on a CPU."
    return f"Kept activations are an estimate: {'; '.join(training.notes)}."


class Fit(TableResult, frozen=True, omit_defaults=True):
    """The largest batch that fits, and the bytes that it and the next one take.

    If it is not complete, the bytes are lower bounds, and no larger batch fits.
    """

    printed_by: ClassVar[str] = "fit"

    batch: int  # 0: not even a batch of one fits
    bytes: int
    next_bytes: int
    memory_bytes: int
    complete: bool = True  # False if memory of some layers is unknown


def fit_line(fit: Fit, what: str = "") -> str:
    """The largest batch that fits, and the bytes of the next larger one."""
    room = bytes_text(fit.memory_bytes)
    sizes = (fit.bytes, fit.next_bytes)
    size, next_size = [at_least(bytes_text(each), not fit.complete) for each in sizes]
    if fit.batch == 0:
        return f"No batch fits in {room}: {what or 'a batch'} of one takes {next_size}."
    largest = "is the largest that fits" if fit.complete else "is the largest that may fit"
    unknown = "" if fit.complete else " Memory of unknown layers is not counted."
    return (
        f"Batch {fit.batch} {largest} in {room}: {what or 'it'} takes {size}, with one more "
        f"{next_size}.{unknown}"
    )
