"""Bars of multiply-adds by module or layer; of the convention's figure where it has one."""

from __future__ import annotations

from layerscope.errors import UsageError
from layerscope.plot.bars import Measure, bars
from layerscope.plot.parts import bars_of
from layerscope.plot.specification import Caption, specification
from layerscope.plot.theme import Spec
from layerscope.report import Report
from layerscope.report.columns import of_convention, titled
from layerscope.report.numbers import exact_text, marked


def costs(report: Report) -> Spec:
    """MACs of each part; FLOPs of a network without MACs."""
    totals = report.totals
    (name,) = of_convention(("macs" if totals.macs or not totals.flops else "flops",), report)
    (column,) = titled((name,), report)
    total = {"macs": totals.macs, "flops": totals.flops}.get(name, totals.convention_ops or 0)
    found = bars_of(report, column, total)
    if not found.bars:
        raise UsageError(f"{report.name}: no layer has {column.title}, so there is nothing to draw")
    whole = marked(exact_text(total), report.sign(name))
    title = f"{report.name}, batch {report.batch}: {column.title} by {found.what}, {whole} in all"
    measure = Measure(column.title, f"share of all {column.title}")
    return specification(Caption(title, found.notes), [bars(found.bars, measure)])
