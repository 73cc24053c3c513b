"""What a user asked beyond the table, for the forms that can tell it."""

from __future__ import annotations

from msgspec import Struct

from layerscope.analysis.training import Training
from layerscope.report.training import Fit, fit_line, training_line
from layerscope.report.types import Report


class Answers(Struct, frozen=True):
    """Memory of training and the batch that fits, each None where it was not asked for."""

    training: Training | None = None
    fit: Fit | None = None

    def lines(self, report: Report) -> tuple[str, ...]:
        """One sentence an answer."""
        told = []
        if self.training is not None:
            told.append(training_line(self.training, report.batch))
        if self.fit is not None:
            told.append(fit_line(self.fit, "training" if self.training else "inference"))
        return tuple(told)
