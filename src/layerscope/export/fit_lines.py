"""Training memory and the largest batch that fits (`--train`, `--fit`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from layerscope.analysis.training import Training
from layerscope.escaping import json_text
from layerscope.export.grid import Blocks, Cell, Grid, Lines, named
from layerscope.report.numbers import at_least, bytes_text
from layerscope.report.training import Fit, fit_line, training_line
from layerscope.report.types import Report

if TYPE_CHECKING:
    from layerscope.export.language_lines import LanguageResults


class MemoryResults(Struct, frozen=True):
    """Memory of a training step and the largest batch; None for what was not requested."""

    training: Training | None = None
    fit: Fit | None = None
    language: LanguageResults | None = None
    open: str = ""  # what of it is not determined

    def lines(self, report: Report) -> tuple[str, ...]:
        """One sentence for each result."""
        sentences = []
        if self.training is not None:
            sentences.append(training_line(self.training, report.batch))
        if self.fit is not None:
            sentences.append(fit_line(self.fit, "training" if self.training else "inference"))
        if self.open:
            sentences.append(self.open)
        return (*sentences, *(self.language.lines() if self.language is not None else ()))

    def table(self) -> Grid | None:
        """What fits by batch size, of a language model."""
        return None if self.language is None else self.language.table()


def headline(found: Fit) -> str:
    """The largest batch in one line."""
    most = "" if found.complete else "at most "
    return f"of batch {most}{found.batch} in {bytes_text(found.memory_bytes)}"


def blocks(found: Fit) -> Blocks:
    """The bytes of the largest batch that fits, and of the next larger one."""
    rows = [[named("batch"), Cell("bytes"), Cell("of memory")]]
    for batch, size in ((found.batch, found.bytes), (found.batch + 1, found.next_bytes)):
        if batch:
            share = size / found.memory_bytes
            figures = [
                _figure(found, size, bytes_text(size)),
                _figure(found, share, f"{share:.1%}"),
            ]
            rows.append([Cell(str(batch), True, value=batch), *figures])
    return [Grid(rows, names=("batch", "bytes", "share")), Lines([fit_line(found)], "list")]


def _figure(found: Fit, value: float, text: str) -> Cell:
    """Bytes or their share, with the sign of a lower bound."""
    if found.complete:
        return Cell(text, value=value)
    return Cell(at_least(text, True), value=at_least(repr(value), True))


def write_json(found: Fit) -> str:
    """The result as JSON."""
    fields = {name: getattr(found, name) for name in found.__struct_fields__}
    if found.complete:
        del fields["complete"]  # as in the JSON of a report
    return json_text({"kind": "fit", "schema": 1, **fields})
