"""The sheet of a course exercise: patch, stride, output size, memory, params and their share."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.escaping import markdown
from layerscope.graph.types import claims_of
from layerscope.notations.sheet import (
    SheetLine,
    SheetTotals,
    lines,
    pool_kind,
    table,
    total_cells,
    with_claims,
)
from layerscope.report import Report
from layerscope.report.numbers import AT_MOST

AXES = {1: ("Length",), 2: ("Height", "Width"), 3: ("Depth", "Height", "Width")}
POOLS = {"max": "Pool", "avg": "AvgPool", "lp": "LPPool"}
TYPES = {"input": "Input", "conv": "Conv", "deconv": "Deconv", "fc": "FC"}


def write(report: Report) -> str:
    """The sheet with exact figures, the share of parameters in percent, and a total row."""
    listed = lines(report)
    rank = max((len(line.sizes) for line in listed if line.sizes is not None), default=0)
    axes = AXES.get(rank, tuple(f"Axis {n + 1}" for n in range(rank)))
    rows = [
        (
            *("Layer ID", "Type"),
            *(f"{what} ({axis})" for what in ("Patch Size", "Stride") for axis in axes),
            *(f"Output Size ({axis})" for axis in (*axes, "Channel")),
            *("Memory", "Params", "Ratio"),
        )
    ]
    total = report.totals.params
    sign = AT_MOST if any(line.weights is None for line in listed) else ""
    ratios = [_ratio(line.weights, total, sign) if line.weights else "" for line in listed]
    claims = claims_of(report.graph, "layersheet")
    rows += [
        with_claims(line, rows[0], (*_row(n, line, rank), ratios[n]), claims)
        for n, line in enumerate(listed)
    ]
    totals = SheetTotals(listed, report)
    memory = f"{totals.sign}{report.totals.convention_activations:,}"
    figures = (totals.memory(memory), totals.params(f"{total:,}"), "")
    rows.append(total_cells(claims, rows[0], ("Total", *("",) * (3 * rank + 2), *figures)))
    return table(rows)


def _row(index: int, line: SheetLine, rank: int) -> tuple[str, ...]:
    blank = ("",) * rank
    window = line.window
    sizes = ("?",) * rank if line.sizes is None else map(str, line.sizes)
    return (
        str(index),
        markdown(_type(line)),
        *(blank if window is None else _padded(window.kernel, rank)),
        *(blank if window is None else _padded(window.stride, rank)),
        *sizes,
        "?" if line.channels is None else str(line.channels),
        "?" if line.elements is None else f"{line.sign}{line.elements:,}",
        "?" if line.weights is None else f"{line.weights:,}" if line.weights else "",
    )


def _padded(sizes: Sequence[int], rank: int) -> tuple[str, ...]:
    """Sizes of all axes; a window of fewer is 1 along the first."""
    return (*("1" for _ in range(rank - len(sizes))), *map(str, sizes))


def _type(line: SheetLine) -> str:
    if line.kind == "pool" and line.layer is not None:
        return POOLS[pool_kind(line.layer)] + line.number
    return TYPES.get(line.kind, line.kind) + line.number


def _ratio(part: int, total: int, sign: str) -> str:
    """Percent with two decimals, halves rounded up, in integer arithmetic."""
    hundredths = (20_000 * part + total) // (2 * total)
    return f"{sign}{hundredths // 100}.{hundredths % 100:02d}%"
