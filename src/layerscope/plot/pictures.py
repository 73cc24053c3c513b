"""Bars of times and activations, and memory over the execution order, as SVG."""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct

from layerscope.errors import UsageError
from layerscope.plot.svg import (
    COLOURS,
    LINES,
    MARGIN,
    RIGHT,
    SOFT,
    WIDTH,
    Canvas,
    Header,
    Key,
    PlotAxis,
    TextStyle,
)
from layerscope.plot.text_width import shortened, text_width
from layerscope.report import Report
from layerscope.report.measurement import LayerTime, Measurement, Run, total_s
from layerscope.report.numbers import bytes_text, counted, marked, percent_text
from layerscope.report.numbers import share_text as share_of_total

MOST = 25  # bars
ROW = 19  # pixels of a bar and the room around it
BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
KINDS = {
    "layer": Key("layers", COLOURS[0]),
    "layout": Key("layout changes", COLOURS[1]),
    "unattributed": Key("unattributed", LINES),
}


class Bar(Struct, frozen=True):
    """A bar: its name, its value in bytes or seconds, its colour and the text beside it."""

    name: str
    value: float
    colour: str
    words: str


def time_bars(report: Report, found: Measurement) -> str:
    """Bars of the slowest rows of the first run, and the share of the rows left out."""
    run = found.runs[0]
    timed_rows = [(row, row.time_s) for row in run.rows if row.time_s is not None]
    timed_rows.sort(key=lambda pair: -pair[1])
    shown, rest = [row for row, _ in timed_rows[:MOST]], [row for row, _ in timed_rows[MOST:]]
    whole = run.timing.end_to_end_s
    bars = [
        Bar(row.name, max(seconds, 0.0), KINDS[row.kind].colour, seconds_text(seconds))
        for row, seconds in timed_rows[:MOST]
    ]
    left_out = _rows_left_out(rest, whole, len(run.rows) - len(timed_rows))
    kinds = [key for kind, key in KINDS.items() if any(row.kind == kind for row in shown)]
    keys = tuple(kinds) if len(kinds) > 1 else ()
    took = "end to end unknown" if whole is None else seconds_text(whole)
    title = f"{run_title(report, run)}, {took}"
    return _bars(Header(title, run_notes(found), keys), SECONDS, bars, left_out)


def _rows_left_out(rest: list[LayerTime], whole: float | None, untimed: int) -> str:
    """How many rows are not drawn and their share of the time, and how many have no time."""
    parts = []
    if rest:
        share = "" if not whole else f": {share_text(Fraction(total_s(rest) / whole))} of the time"
        parts.append(f"{counted(len(rest), 'more row')}{share}")
    if untimed:
        parts.append(f"{counted(untimed, 'layer')} without a time")
    return "; ".join(parts)


def run_title(report: Report, run: Run) -> str:
    """Network, batch size, engine and threads of a run."""
    threads = "1 thread" if run.threads == 1 else f"{run.threads} threads"
    on = "" if run.threads is None else f" on {threads}"
    return f"{report.name}, batch {report.batch}: {run.engine}{on}"


def run_notes(found: Measurement) -> tuple[str, ...]:
    """What a plot of the first run leaves out."""
    run, *others = found.runs
    notes = []
    if not run.complete:
        notes.append("The run ended early: times are of the repeats before that.")
    if others:
        names = ", ".join(f"{other.engine} with fusion {other.fusion}" for other in others)
        notes.append(f"Fusion {run.fusion}. Not drawn: {names}.")
    return tuple(notes)


def activation_bars(report: Report) -> str:
    """Bars of the layers that write most bytes, and the share of the layers left out."""
    sizes = {layer.name: layer.activation_bytes for layer in report.layers}
    names = [name for name in sorted(sizes, key=lambda name: -sizes[name]) if sizes[name]][:MOST]
    bars = [Bar(name, sizes[name], COLOURS[0], bytes_text(sizes[name])) for name in names]
    total = sum(sizes.values())
    rest = total - sum(sizes[name] for name in names)
    count = len(sizes) - len(names)
    unknown = sum(report.coverage.unknown.values())
    left_out = ""
    if count and rest:
        share = share_of_total(rest, total, report.sign("activation_bytes"))
        left_out = f"{counted(count, 'more layer')}: {share} of the activations, {bytes_text(rest)}"
    elif count > unknown:
        left_out = f"{counted(count - unknown, 'more layer')}: no activations of their own"
    notes = (
        (f"Activations of {counted(unknown, 'layer')} are unknown and in no share.",)
        if unknown
        else ()
    )
    whole = marked(bytes_text(total), report.sign("activation_bytes"))
    title = f"{report.name}, batch {report.batch}: activations, {whole} in all"
    return _bars(Header(title, notes), BYTES, bars, left_out)


def share_text(share: Fraction) -> str:
    """A share in percent; 0% of nothing."""
    return f"{percent_text(max(share, Fraction(0))) or 0}%"


def seconds_text(seconds: float) -> str:
    """A time in three significant figures."""
    scale, unit = _unit(seconds, SECONDS)
    return f"{seconds / scale:.3g} {unit}"


def _unit(value: float, units: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    """The largest unit that the value has at least one of."""
    return next((each for each in units if value >= each[0]), units[-1])


def _bars(
    header: Header, units: tuple[tuple[float, str], ...], bars: list[Bar], left_out: str
) -> str:
    """Horizontal bars with names on the left, and a line on what is left out below the last."""
    longest = max((bar.value for bar in bars), default=1.0) or 1.0
    scale, unit = _unit(longest, units)
    widest = max((text_width(bar.name, 11) for bar in bars), default=0.0)
    left = MARGIN + 8 + int(min(widest, WIDTH * 0.45))
    beside = 10 + max((text_width(bar.words, 10) for bar in bars), default=0.0)
    wide = WIDTH - RIGHT - left
    what = "time" if units is SECONDS else "activations"
    x = PlotAxis(0, longest / scale * wide / (wide - beside), f"{what} ({unit})")
    height = ROW * max(len(bars) + bool(left_out), 1)
    canvas = Canvas(header, x, PlotAxis(0, 1, ""), left=left, height=height)
    for n, bar in enumerate(bars):
        top = canvas.top + n * ROW
        canvas.bar(bar.value / scale, top + 2, ROW - 5, bar.colour, f"{bar.name}: {bar.words}")
        name = shortened(bar.name, left - 6 - MARGIN, 11)
        canvas.write(left - 6, top + 13, name, TextStyle("end", size=11))
        across, _ = canvas.at(bar.value / scale, 0)
        canvas.write(across + 4, top + 13, bar.words, TextStyle("start", SOFT, 10))
    if left_out:
        canvas.write(left + 4, canvas.bottom - 6, left_out, TextStyle(size=11))
    return canvas.render(x_text=lambda v: f"{v:.3g}")


def memory_steps(report: Report) -> str:
    """Bytes of activations alive while each layer runs, with the peak marked."""
    memory = report.memory
    alive = memory.alive_bytes
    if not alive:
        raise UsageError(f"{report.name}: the network has no layers")
    scale, unit = _unit(max(alive), BYTES)
    x = PlotAxis(0, len(alive), "layers in execution order")
    y = PlotAxis(0, max(alive) / scale * 1.1 or 1.0, f"activations alive ({unit})")
    notes = ["Inputs and activations, without weights."]
    if "peak_activation_bytes" in report.lower_bounds:
        what = "Memory of unknown layers is" if memory.complete else "Tensors of unknown shape are"
        notes.append(f"{what} left out: the bytes are lower bounds.")
    title = f"{report.name}, batch {report.batch}: activations alive"
    canvas = Canvas(Header(title, tuple(notes)), x, y)
    points = []
    for n, size in enumerate(alive):
        points += [(float(n), size / scale), (float(n + 1), size / scale)]
    canvas.area(points, COLOURS[0])
    canvas.line(points, COLOURS[0])
    at = alive.index(max(alive))
    peak = marked(bytes_text(max(alive)), report.sign("peak_activation_bytes"))
    words = f"{peak} at {memory.peak_node}"
    side = "start" if at < len(alive) / 2 else "end"
    canvas.dot(at + 0.5, max(alive) / scale, 4, COLOURS[1], words)
    canvas.text(at + 0.5, max(alive) / scale, words, TextStyle(side), dy=-8)
    return canvas.render(x_text=lambda v: f"{v:g}", y_text=lambda v: f"{v:.3g}")
