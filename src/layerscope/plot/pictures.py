"""Roofline, time, memory and activations as SVG."""

from __future__ import annotations

from math import sqrt

from layerscope.errors import UsageError
from layerscope.plot.svg import BOTTOM, COLOURS, GREY, TOP, WIDTH, Canvas, PlotAxis, TextStyle
from layerscope.report import Report
from layerscope.report.measurement import Machine, Run, total_s
from layerscope.report.numbers import bytes_text, short_text
from layerscope.report.timed import TimedRow, longest_first, threads_of, timed

MOST = 25  # bars
ROW = 19  # pixels of a bar and the room around it


def roofline(report: Report, run: Run, machine: Machine | None) -> str:
    """Every row as a dot with the area of its time, under the peak and the bandwidths."""
    rows = [each for each in timed(report, run, machine) if each.flops and each.flops_s]
    if not rows:
        raise UsageError(f"{report.name}: no layer has FLOPs and a time, so there is no roofline")
    peak = machine.peak(report.float_dtype, threads_of(run, machine)) if machine else None
    levels = []
    if machine:
        threads = threads_of(run, machine)
        levels = [machine.level(name, threads) for name in ("L2", "L3", "DRAM")]
    rates = [each.flops_s or 0.0 for each in rows] + ([peak.flops.best] if peak else [])
    dense = [each.intensity for each in rows if each.moved_bytes]
    x = PlotAxis(min(dense) / 1.6, max(max(dense) * 1.6, 64), "FLOP per byte", log=True)
    y = PlotAxis(min(rates) / 1.6, max(rates) * 1.6, "FLOP/s", log=True)
    on = "" if run.threads is None else f" on {run.threads} threads"
    title = f"{report.name}, batch {report.batch}: {run.engine}{on}"
    canvas = Canvas(title, x, y)
    top = peak.flops.best if peak else max(rates)
    if peak:
        canvas.line([(x.low, top), (x.high, top)], GREY)
        words = f"{short_text(int(top))}FLOP/s, products in {peak.dtype}"
        canvas.text(x.high, top, words, TextStyle("end", GREY), dy=-5)
    for level in levels:
        if level is None:
            continue
        rate = level.rate.best
        begin, end = max(x.low, y.low / rate), min(x.high, top / rate)
        if begin < end:
            canvas.line([(begin, begin * rate), (end, end * rate)], GREY, dashed=True)
            words = f"{level.name} {bytes_text(int(rate))}/s"
            dy = 18 if level.name == "DRAM" else -8
            canvas.text(begin, begin * rate, words, TextStyle("start", GREY, 11), dy=dy)
    kinds = _kinds(rows)
    spent = total_s(run.rows)
    for each in sorted(rows, key=lambda each: longest_first(each.row)):
        seconds, speed = each.row.time_s, each.flops_s
        if each.moved_bytes and seconds is not None and speed is not None:
            tooltip = f"{each.row.name}: {seconds * 1e3:.3g} ms, {speed / 1e9:.3g} GFLOP/s"
            share = seconds / spent if each.share is None else each.share
            radius = 3 + 22 * sqrt(max(share, 0.0))
            canvas.dot(each.intensity, speed, radius, kinds[each.op], tooltip)
    _legend(canvas, kinds)
    return canvas.render(x_text=lambda v: f"{v:g}", y_text=lambda v: short_text(int(v)))


def _kinds(rows: list[TimedRow]) -> dict[str, str]:
    """A colour per op, slowest ops first; further ops share the last colour."""
    spent: dict[str, float] = {}
    for each in rows:
        spent[each.op] = spent.get(each.op, 0.0) + (each.row.time_s or 0.0)
    ordered = sorted(spent, key=lambda kind: -spent[kind])
    return {kind: COLOURS[min(n, len(COLOURS) - 1)] for n, kind in enumerate(ordered)}


def _legend(canvas: Canvas, kinds: dict[str, str]) -> None:
    across = float(canvas.left)
    for kind, colour in list(kinds.items())[: len(COLOURS)]:
        canvas.parts.append(f'<circle cx="{across + 5:.1f}" cy="{TOP - 6}" r="4" fill="{colour}"/>')
        canvas.write(across + 13, TOP - 2, kind or "other", TextStyle(size=11))
        across += 24 + 6.4 * len(kind or "other")


def time_bars(report: Report, run: Run) -> str:
    """Bars of the slowest rows."""
    known = [(row, row.time_s * 1e3) for row in run.rows if row.time_s is not None]
    known.sort(key=lambda pair: -pair[1])
    whole = run.timing.end_to_end_s
    took = "end to end unknown" if whole is None else f"{whole * 1e3:.3g} ms"
    missing = len(run.rows) - len(known)
    without = f"; {missing} layers without a time" if missing else ""
    title = f"{report.name}, batch {report.batch}: {run.engine}, {took}{without}"
    marks = {"layer": COLOURS[0], "layout": COLOURS[1], "unattributed": GREY}
    bars = [(row.name, max(ms, 0.0), marks[row.kind], f"{ms:.3g} ms") for row, ms in known[:MOST]]
    return _bars(title, "ms", bars)


def activation_bars(report: Report) -> str:
    """Bars of the layers with the largest outputs."""
    sizes = {layer.name: sum(tensor.bytes for tensor in layer.outputs) for layer in report.layers
            if report.memory.written[layer.name]}  # fmt: skip
    names = sorted(sizes, key=lambda name: -sizes[name])[:MOST]
    bars = [(name, sizes[name] / 1e6, COLOURS[0], bytes_text(sizes[name])) for name in names]
    return _bars(f"{report.name}, batch {report.batch}: activations", "MB", bars)


def _bars(title: str, unit: str, bars: list[tuple[str, float, str, str]]) -> str:
    longest = max((value for _, value, _, _ in bars), default=1.0) or 1.0
    left = min(60 + int(6.2 * max((len(name) for name, *_ in bars), default=1)), WIDTH // 2)
    height = TOP + BOTTOM + ROW * max(len(bars), 1)
    canvas = Canvas(
        title, PlotAxis(0, longest * 1.12, unit), PlotAxis(0, 1, ""), left=left, height=height
    )
    for n, (name, value, colour, words) in enumerate(bars):
        top = TOP + n * ROW
        canvas.bar(value, top + 2, ROW - 5, colour, f"{name}: {words}")
        room = int((left - 14) / 6.2)
        short = name if len(name) <= room else name[: room - 1] + "…"
        canvas.write(left - 6, top + 13, short, TextStyle("end", size=11))
        across, _ = canvas.at(value, 0)
        canvas.write(across + 4, top + 13, words, TextStyle("start", GREY, 10))
    return canvas.render(x_text=lambda v: f"{v:.3g}")


def memory_steps(report: Report) -> str:
    """Bytes of activations alive while each layer runs, with the peak marked."""
    alive = report.memory.alive_bytes
    if not alive:
        raise UsageError(f"{report.name}: the network has no layers")
    x = PlotAxis(0, len(alive), "layers in execution order")
    y = PlotAxis(0, max(alive) / 1e6 * 1.1 or 1.0, "MB alive")
    canvas = Canvas(f"{report.name}, batch {report.batch}: activations alive", x, y)
    points = []
    for n, size in enumerate(alive):
        points += [(float(n), size / 1e6), (float(n + 1), size / 1e6)]
    canvas.area(points, COLOURS[0])
    canvas.line(points, COLOURS[0])
    at = alive.index(max(alive))
    words = f"{bytes_text(max(alive))} at {report.memory.peak_node}"
    side = "start" if at < len(alive) / 2 else "end"
    canvas.dot(at + 0.5, max(alive) / 1e6, 4, COLOURS[1], words)
    canvas.text(at + 0.5, max(alive) / 1e6, words, TextStyle(side), dy=-8)
    return canvas.render(x_text=lambda v: f"{v:g}", y_text=lambda v: f"{v:.3g}")
