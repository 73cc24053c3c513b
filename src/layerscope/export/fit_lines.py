"""Training memory and the largest batch that fits (`--train`, `--fit`), as lines of text."""

from __future__ import annotations

from msgspec import Struct

from layerscope.analysis.training import Training
from layerscope.report.training import Fit, fit_line, training_line
from layerscope.report.types import Report


class MemoryResults(Struct, frozen=True):
    """Memory of a training step and the largest batch; None for what was not requested."""

    training: Training | None = None
    fit: Fit | None = None

    def lines(self, report: Report) -> tuple[str, ...]:
        """One sentence for each result."""
        sentences = []
        if self.training is not None:
            sentences.append(training_line(self.training, report.batch))
        if self.fit is not None:
            sentences.append(fit_line(self.fit, "training" if self.training else "inference"))
        return tuple(sentences)
