"""Bars of parameters by module or layer."""

from __future__ import annotations

from layerscope.errors import UsageError
from layerscope.plot.bars import Measure, bars
from layerscope.plot.parts import bars_of
from layerscope.plot.specification import Caption, specification
from layerscope.plot.theme import Spec
from layerscope.report import Report
from layerscope.report.columns import COLUMNS
from layerscope.report.numbers import bytes_text, exact_text, marked


def params(report: Report) -> Spec:
    """Parameters of each part, tied ones where they are used first."""
    total = report.totals.params
    found = bars_of(report, COLUMNS["params"], total)
    if not found.bars:
        raise UsageError(f"{report.name}: no layer has parameters, so there is nothing to draw")
    whole = marked(exact_text(total), report.sign("params"))
    size = marked(bytes_text(report.totals.param_bytes), report.sign("param_bytes"))
    title = f"{report.name}: parameters by {found.what}, {whole} in all"
    caption = Caption(title, (*found.notes, f"Weights and buffers take {size}."))
    return specification(caption, [bars(found.bars, Measure("params", "share of all params"))])
