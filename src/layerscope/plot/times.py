"""Bars of the slowest rows of a run, or of a prediction with its error intervals."""

from __future__ import annotations

from fractions import Fraction

from layerscope.plot.bars import SECONDS, Bar, Measure, bars
from layerscope.plot.specification import Caption, specification
from layerscope.plot.theme import Spec, tone
from layerscope.report import Report
from layerscope.report.measurement import LayerTime, Measurement, Run, total_s
from layerscope.report.numbers import at_least, counted, percent_text, time_text
from layerscope.report.prediction import LayerGuess, Prediction
from layerscope.report.timed import longest_first, timed

MOST = 25  # bars
TONES = {"layout": "plain", "unattributed": "quiet"}
KINDS = {"layout": "layout change", "unattributed": "in no layer"}
MEASURE = Measure("time", "share of the time", SECONDS)


def times(report: Report, found: Measurement) -> Spec:
    """Bars of the slowest rows of the first run, and the share of the rows left out."""
    run = found.runs[0]
    numbers = {layer.name: n for n, layer in enumerate(report.layers)}
    rows = sorted(timed(report, run, None), key=lambda each: longest_first(each.row))
    with_times = [each for each in rows if each.row.time_s is not None]
    whole = run.timing.end_to_end_s
    shown = [
        Bar(
            each.row.name, max(each.row.time_s or 0.0, 0.0), time_text(each.row.time_s),
            "" if each.share is None else f"{each.share * 100:.1f}%",
            TONES.get(each.row.kind) or tone(each.share or 0.0),
            KINDS.get(each.row.kind, each.op), numbers.get(each.main),
            tuple([numbers[name] for name in each.row.layers if name in numbers]),
        )
        for each in with_times[:MOST]
    ]  # fmt: skip
    left_out = _left_out(
        [each.row for each in with_times[MOST:]], whole, len(rows) - len(with_times)
    )
    took = "end to end unknown" if whole is None else time_text(whole)
    notes = [*run_notes(found), *left_out]
    if any(bar.tone in ("plain", "quiet") for bar in shown):
        notes.append("Grey: time in layout changes, or in no layer.")
    caption = Caption(f"{run_title(report, run)}, {took}", tuple(notes))
    return specification(caption, [bars(shown, MEASURE)])


def _left_out(rest: list[LayerTime], whole: float | None, untimed: int) -> list[str]:
    """How many rows are not drawn and their share of the time, and how many have no time."""
    notes = []
    if rest:
        share = "" if not whole else f": {share_of_time(total_s(rest) / whole)} of the time"
        notes.append(f"Slowest first. Not drawn: {counted(len(rest), 'more row')}{share}.")
    if untimed:
        notes.append(f"Not drawn: {counted(untimed, 'layer')} without a time.")
    return notes


def run_title(report: Report, run: Run) -> str:
    """Network, batch size, engine and threads of a run."""
    on = "" if run.threads is None else f" on {counted(run.threads, 'thread')}"
    return f"{report.name}, batch {report.batch}: {run.engine}{on}"


def run_notes(found: Measurement) -> tuple[str, ...]:
    """What a chart of the first run leaves out, and how busy the machine was."""
    run, *others = found.runs
    notes = []
    if not run.complete:
        notes.append("The run ended early: times are of the repeats before that.")
    if others:
        names = ", ".join(f"{other.engine} with fusion {other.fusion}" for other in others)
        notes.append(f"Fusion {run.fusion}. Not drawn: {names}.")
    busy = run.timing.contention
    notes.append("Contention unknown." if busy is None else f"Contention {busy:.2f}.")
    return tuple(notes)


def share_of_time(share: float) -> str:
    """A share in percent; 0% of nothing."""
    return f"{percent_text(max(Fraction(share), Fraction(0))) or 0}%"


def predicted_times(found: Prediction) -> Spec:
    """Bars of the slowest predicted rows, unknown ones first, with 68 % intervals."""
    rows = sorted(found.rows, key=lambda row: (row.time_s is not None, -(row.time_s or 0.0)))
    shown = [_guess(row, found) for row in rows[:MOST]]
    rest = rows[MOST:]
    notes = ["Predicted, not measured; thin lines are 68 % intervals.", f"By {found.source}."]
    if rest:
        spent = sum(row.time_s or 0.0 for row in rest)
        share = _share(spent, found)
        notes.append(
            f"Slowest first. Not drawn: {counted(len(rest), 'more row')}"
            f"{f': {share} of the time' if share else ''}."
        )
    if found.is_lower_bound:
        count = sum(found.unknown.values())
        notes.append(f"{counted(count, 'row')} without a time (?): the total is a lower bound.")
    took = at_least(time_text(found.total_s), found.is_lower_bound)
    title = f"{found.network}, batch {found.batch}: {took} predicted on {found.machine}"
    return specification(Caption(title, tuple(notes)), [bars(shown, MEASURE)])


def _guess(row: LayerGuess, found: Prediction) -> Bar:
    if row.time_s is None:
        return Bar(row.name, None, "?", "", "plain", row.kind)
    error = row.error or 0.0
    span = (row.time_s / (1 + error), row.time_s * (1 + error)) if error else None
    share = row.time_s / found.total_s if found.total_s else 0.0
    return Bar(
        row.name, row.time_s, time_text(row.time_s), _share(row.time_s, found), tone(share),
        row.kind, interval=span,
    )  # fmt: skip


def _share(seconds: float, found: Prediction) -> str:
    """Percent of the total; none of a lower bound."""
    if found.is_lower_bound or not found.total_s:
        return ""
    return f"{seconds / found.total_s * 100:.1f}%"
