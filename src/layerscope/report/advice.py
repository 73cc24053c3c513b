"""Findings beside those under a table: fields larger than the input, and lower memory peaks.

What would lower the peak is computed again by the liveness walk, with layers in place or in another
order.
"""

from __future__ import annotations

from layerscope.analysis.fields import Field
from layerscope.analysis.memory import Memory, liveness
from layerscope.analysis.orders import other_order
from layerscope.report.columns import field_area, field_text
from layerscope.report.findings import NetworkFinding
from layerscope.report.numbers import counted, share_text
from layerscope.report.types import Report


def advice(report: Report) -> tuple[NetworkFinding, ...]:
    """All of these findings that apply to a network."""
    found = (large_fields(report), in_place(report), reordered(report))
    return tuple(finding for finding in found if finding is not None)


def large_fields(report: Report) -> NetworkFinding | None:
    """The layers whose receptive field is larger than the input on some axis."""
    pairs = [(layer.name, field) for layer in report.layers if (field := layer.field) is not None]
    large = [(name, field) for name, field in pairs if _exceeds(field)]
    if not large:
        return None
    name, field = max(large, key=lambda pair: field_area(pair[1]))
    sizes = {each.name: each.shape for each in report.inputs}
    shape = sizes.get(field.input) or ()
    whole = "x".join(map(str, shape[2:]))
    text = (
        f"The receptive field exceeds the input of {whole} from {large[0][0]} on: in "
        f"{len(large):,} of {counted(len(pairs), 'layer')}, at most {field_text(field)} in {name}."
    )
    return NetworkFinding("field", text, tuple(name for name, _ in large))


def _exceeds(field: Field) -> bool:
    return any(not axis.everything and axis.size > axis.length for axis in field.axes)


def in_place(report: Report) -> NetworkFinding | None:
    """How far the peak falls if activation, norm and add layers run in place."""
    now = report.memory
    if now.in_place or not now.complete:
        return None
    then = liveness(report.graph, report.shapes, in_place=True)
    layers = tuple(
        name for name, size in now.written_bytes.items() if size and not then.written_bytes[name]
    )
    what = f"In place, {counted(len(layers), 'activation, norm and add layer')}"
    return _saving("in_place", what, layers, (now, then))


def reordered(report: Report) -> NetworkFinding | None:
    """How far the peak falls in another order of execution, if a greedy search finds one."""
    found = other_order(report.graph, report.shapes, report.memory)
    if found is None:
        return None
    first, more = found.moved[0], len(found.moved) - 1
    named = first if not more else f"{first} and {counted(more, 'other layer')}"
    what = f"Another order of execution, in which {named} move{'' if more else 's'},"
    return _saving("order", what, found.moved, (report.memory, found.memory))


def _saving(
    kind: str, what: str, layers: tuple[str, ...], peaks: tuple[Memory, Memory]
) -> NetworkFinding | None:
    """A finding that the second peak is lower; None if it is not."""
    before, after = (memory.peak_bytes for memory in peaks)
    saved = before - after
    if saved <= 0:
        return None
    share = share_text(saved, before)
    text = f"{what} would lower the memory peak by {saved:,} bytes ({share}), to {after:,}."
    return NetworkFinding(kind, text, layers, saved)
