"""The Markdown sheet of backbone notes: window, channels, size, params and memory per layer."""

from __future__ import annotations

from layerscope.escaping import code_span
from layerscope.graph.attributes import Window
from layerscope.graph.types import Shape, claims_of
from layerscope.notations.sheet import (
    SheetLine,
    SheetTotals,
    axes_text,
    lines,
    memory_text,
    params_text,
    pool_kind,
    table,
    total_cells,
    total_text,
    with_claims,
)
from layerscope.notations.sheet_findings import sheet_findings
from layerscope.report import Report

HEADER = ("name", "ksize", "stride", "padding", "**channel**", "size", "params", "memory(B)")


def write(report: Report) -> str:
    """The sheet: sizes where they change, parameters truncated, memory rounded."""
    rows: list[tuple[str, ...]] = [HEADER]
    before: SheetLine | None = None
    listed = lines(report)
    claims = claims_of(report.graph, "backbone")
    for line in listed:
        rows.append(with_claims(line, HEADER, _row(line, before), claims))
        before = line
    rows.append(("",) * len(HEADER))
    totals = SheetTotals(listed, report)
    params = totals.params(f"~{total_text(report.totals.params, cut=True)}")
    memory = totals.memory(f"~{total_text(report.totals.convention_activations)}")
    rows.append(total_cells(claims, HEADER, ("`total`", *[""] * 5, params, memory)))
    return table(rows, centred=True)


def findings(report: Report) -> tuple[str, ...]:
    """Rows with most memory and with most params."""
    return sheet_findings(lines(report), _name)


def _row(line: SheetLine, before: SheetLine | None) -> tuple[str, ...]:
    window = line.window
    return (
        f"`{code_span(_name(line))}`",
        axes_text(window.kernel) if window else "",
        axes_text(window.stride) if window else "",
        _padding(line, window) if window else "",
        _channels(line, before),
        _size(line.sizes, before),
        "?" if line.weights is None else params_text(line.weights) if line.weights else "",
        "?" if line.elements is None else line.sign + memory_text(line.elements, tenths=True),
    )


def _name(line: SheetLine) -> str:
    if line.kind == "pool" and line.layer is not None:
        return f"{pool_kind(line.layer)}pool"
    return line.kind + line.number


def _padding(line: SheetLine, window: Window) -> str:
    """Blank for a pool without padding; begin:end if the two differ."""
    if isinstance(window.pads, str):
        return "same"
    if line.kind == "pool" and not any(map(any, window.pads)):
        return ""
    return axes_text([b if b == e else f"{b}:{e}" for b, e in window.pads])


def _channels(line: SheetLine, before: SheetLine | None) -> str:
    """Blank if a layer that cannot change the channels has those of the line before."""
    own = line.kind in ("input", "conv", "deconv", "fc")
    if not own and before is not None and line.channels == before.channels is not None:
        return ""
    return "?" if line.channels is None else str(line.channels)


def _size(sizes: Shape | None, before: SheetLine | None) -> str:
    if sizes is None:
        return "?"
    if not sizes or (before is not None and sizes == before.sizes):
        return ""
    return "$" + r" \times ".join(map(str, sizes)) + "$"
