"""Bars of the layers that write most bytes."""

from __future__ import annotations

from fractions import Fraction

from layerscope.plot.bars import BYTES, Bar, Measure, bars
from layerscope.plot.parts import layer_text
from layerscope.plot.specification import Caption, specification
from layerscope.plot.theme import Spec, tone
from layerscope.report import Report
from layerscope.report.numbers import bytes_text, counted, marked, share_text

MOST = 25  # bars


def activations(report: Report) -> Spec:
    """The largest layers, largest first, and the share of the layers left out."""
    layers = report.layers
    sizes = [layer.activation_bytes for layer in layers]
    order = sorted(range(len(sizes)), key=lambda n: -sizes[n])
    numbers = [n for n in order if sizes[n]][:MOST]
    total, sign = sum(sizes), report.sign("activation_bytes")
    found = [
        Bar(
            layers[n].name, sizes[n], layer_text(report, n, "memory"),
            share_text(sizes[n], total, sign), tone(Fraction(sizes[n], total)), layers[n].op, n,
        )
        for n in numbers
    ]  # fmt: skip
    whole = marked(bytes_text(total), sign)
    title = f"{report.name}, batch {report.batch}: activations, {whole} in all"
    notes = _notes(report, len(sizes) - len(found), total - sum(sizes[n] for n in numbers))
    measure = Measure("activations", "share of all activations", BYTES)
    return specification(Caption(title, notes), [bars(found, measure)])


def _notes(report: Report, count: int, rest: int) -> tuple[str, ...]:
    """Which layers have no bar, and why."""
    unknown = sum(report.coverage.unknown.values())
    total, sign = report.totals.activation_bytes, report.sign("activation_bytes")
    notes = []
    if count and rest:
        share = share_text(rest, total, sign)
        notes.append(
            f"Largest first. Not drawn: {counted(count, 'more layer')}: {share} of the "
            f"activations, {bytes_text(rest)}."
        )
    elif count > unknown:
        notes.append(f"{counted(count - unknown, 'more layer')}: no activations of their own.")
    if unknown:
        notes.append(f"Activations of {counted(unknown, 'layer')} are unknown and in no share.")
    return tuple(notes)
