"""Rooflines: FLOP/s over FLOP/B under the limits of a machine, measured or attainable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import floor, fsum, log10, pi, sqrt

from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import UsageError
from layerscope.escaping import visible
from layerscope.plot.roofs import DrawnRoofs, source_of, used_dtypes, why_no_roofs
from layerscope.plot.specification import (
    CHOSEN,
    WIDTH,
    Caption,
    ChartView,
    layer,
    number,
    span,
    specification,
    text,
    tooltips,
)
from layerscope.plot.theme import KINDS, Spec
from layerscope.plot.times import run_notes, run_title, share_of_time
from layerscope.report import Report
from layerscope.report.measurement import Level, Measurement, Peak, total_s
from layerscope.report.numbers import counted, rate_text, ratio_text, time_text
from layerscope.report.timed import timed

HEIGHT, LEFT = 400, 62
DASHES = {"L2": [2, 3], "L3": [8, 3, 2, 3], "DRAM": [6, 4]}
MOST_DOTS = 1000
MOST_LAYERS = 100  # indices in the data of a dot
LEAST_AREA, WHOLE_AREA = 14, 2400  # square pixels of a dot without a share, and of all the time
SHAPES = ["circle", "diamond"]
SHORTEST = 1e-8  # seconds that are printed as microseconds
TICKS = 7  # at most, on an axis


class Dot(Struct, frozen=True):
    """A layer, or a row of a run, and its share of the time."""

    name: str
    op: str
    intensity: float
    flops_s: float
    share: float
    layers: tuple[int, ...]  # indices, that with most operations first
    has_macs: bool
    facts: tuple[str, str] = ("", "")  # time, and share of the roof
    count: int = 1  # layers that are one dot, since they would cover each other


class Scene(Struct, frozen=True):
    """What a roofline draws."""

    y_title: str
    dots: Sequence[Dot]
    peaks: Sequence[Peak] = ()
    levels: Sequence[Level] = ()


def attainable_roofline(report: Report, roofs: DrawnRoofs) -> Spec:
    """Layers at their arithmetic intensity and the FLOP/s that the machine allows at most."""
    layers = [
        (n, layer) for n, layer in enumerate(report.layers) if layer.ops.flops and layer.moved_bytes
    ]
    if not layers:
        raise UsageError(f"{report.name}: no layer has FLOPs, so there is no roofline")
    least = [layer.ops.flops / roofs.attainable(layer) for _, layer in layers]
    whole = fsum(least)
    dots = [
        Dot(
            layer.name, layer.op, float(layer.intensity or 0), roofs.attainable(layer),
            seconds / whole, (n,), bool(layer.ops.mac), (f"≥{_least_text(seconds)}", ""),
        )
        for (n, layer), seconds in zip(layers, least, strict=True)
    ]  # fmt: skip
    unknown = sum(report.coverage.unknown.values())
    idle = len(report.layers) - len(layers) - unknown
    notes = [
        "Bounds, not measurements: each layer is at min(peak, FLOP/B × bandwidth of DRAM), as if "
        f"all its bytes came from DRAM. Area: share of the sum of these times, "
        f"{_least_text(whole)}.",
        f"{source_of(roofs)}.{_left_out(idle, unknown)}",
    ]
    title = f"{report.name}, batch {report.batch}, {roofs.dtype}: roofline without a run"
    scene = _scene("attainable (FLOP/s)", dots, roofs, used_dtypes(report, roofs))
    return _specification(Caption(title, tuple(notes)), scene)


def measured_roofline(report: Report, found: Measurement, roofs: DrawnRoofs | None) -> Spec:
    """Rows of the first run at the FLOP/s that they reached; without roofs a note says so."""
    run = found.runs[0]
    numbers = {layer.name: n for n, layer in enumerate(report.layers)}
    rows = timed(report, run, None if roofs is None else roofs.machine)
    whole = run.timing.end_to_end_s or total_s(run.rows)
    dots = []
    for each in rows:
        seconds, speed = each.row.time_s, each.flops_s
        if not (each.flops and each.moved_bytes and seconds and speed):
            continue
        others = [numbers[name] for name in each.row.layers if name in numbers]
        layers = tuple(dict.fromkeys((numbers[each.main], *others)))
        roof = f"{each.roof.share:.0%} of {each.roof.name}" if each.roof else ""
        dots.append(
            Dot(
                each.row.name, each.op, each.intensity, speed, max(seconds / whole, 0.0), layers,
                each.macs > 0, (time_text(seconds), roof),
            )
        )  # fmt: skip
    if not dots:
        raise UsageError(f"{report.name}: no layer has FLOPs and a time, so there is no roofline")
    of_rows = "" if run.timing.end_to_end_s else " of its rows, since the whole is unknown"
    notes = [*run_notes(found), f"Area: share of the time of the run{of_rows}."]
    if roofs is None:
        notes.append(f"No roofs: {why_no_roofs(report, found)}.")
    else:
        other = "" if roofs.machine == found.machine else ", not those of the run"
        notes.append(f"{source_of(roofs)}{other}.")
    if len(dots) < len(rows):
        rest = max(1 - fsum(dot.share for dot in dots), 0.0)
        notes.append(
            f"Not drawn: {counted(len(rows) - len(dots), 'row')} without FLOPs or a time, "
            f"{share_of_time(rest)} of the time."
        )
    took = time_text(run.timing.end_to_end_s) if run.timing.end_to_end_s else "end to end unknown"
    used = () if roofs is None else used_dtypes(report, roofs)
    caption = Caption(f"{run_title(report, run)}, {took}", tuple(notes))
    return _specification(caption, _scene("performance (FLOP/s)", dots, roofs, used))


def _least_text(seconds: float) -> str:
    """A time; nanoseconds where microseconds would print as 0."""
    return time_text(seconds) if seconds >= SHORTEST else f"{seconds * 1e9:.2g} ns"


def _left_out(idle: int, unknown: int) -> str:
    """What is not drawn, as a sentence after a space; "" if all layers are."""
    texts = [f"{counted(idle, 'layer')} without FLOPs"] if idle else []
    texts += [f"{counted(unknown, 'layer')} with unknown figures"] if unknown else []
    return f" Not drawn: {' and '.join(texts)}." if texts else ""


def _scene(
    y_title: str, dots: Sequence[Dot], roofs: DrawnRoofs | None, used: Iterable[str]
) -> Scene:
    if roofs is None:
        return Scene(y_title, dots)
    peaks = [peak for kind, peak in roofs.peaks.items() if kind in used]
    return Scene(y_title, dots, peaks, roofs.levels)


def _merged(dots: Sequence[Dot]) -> list[Dot]:
    """Dots of one op at one point as one, with the sum of their shares."""
    found: dict[tuple[str, float, float], list[Dot]] = {}
    for dot in dots:
        found.setdefault((dot.op, dot.intensity, dot.flops_s), []).append(dot)
    return [
        group[0] if len(group) == 1 else replace(
            group[0], name=f"{group[0].name} … {group[-1].name}", facts=("", group[0].facts[1]),
            share=fsum(dot.share for dot in group), count=sum(dot.count for dot in group),
            layers=tuple([n for dot in group for n in dot.layers]),
        )
        for group in found.values()
    ]  # fmt: skip


def _specification(caption: Caption, scene: Scene) -> Spec:
    """The chart: dots by kind, the peaks of the used dtypes, and the bandwidths."""
    notes = list(caption.notes)
    dots = sorted(scene.dots, key=lambda dot: -dot.share)
    if len(dots) > MOST_DOTS:
        dots = sorted(_merged(dots), key=lambda dot: -dot.share)
        notes.append(
            f"Layers of one op at one point are one dot, since there are {len(scene.dots):,}."
        )
    if len(dots) > MOST_DOTS:
        rest = fsum(dot.share for dot in dots[MOST_DOTS:])
        notes.append(
            f"Not drawn: {counted(len(dots) - MOST_DOTS, 'dot')} with the least time, "
            f"{share_of_time(rest)} of it."
        )
        dots = dots[:MOST_DOTS]
    kinds = {dot.has_macs for dot in dots}
    if len(kinds) == 2:
        notes.append("Circles: layers with multiply-adds; grey diamonds: others.")
    view = _view(replace(scene, dots=dots))
    return specification(replace(caption, notes=tuple(notes)), [view])


def _view(scene: Scene) -> ChartView:
    rates = [dot.flops_s for dot in scene.dots] + [peak.flops.best for peak in scene.peaks]
    top = max((peak.flops.best for peak in scene.peaks), default=0.0)
    ridges = [2 * top / level.rate.best for level in scene.levels]
    dense = [dot.intensity for dot in scene.dots]
    across = (min(dense) / 1.6, max(max(dense) * 1.6, *ridges, 64))
    up = (min(rates) / 2, max(rates) * 2.5)
    x_axis = {"title": "arithmetic intensity (FLOP/B)", "labelExpr": "format(datum.value, '~r')"}
    y_axis = {
        "title": scene.y_title, "labelExpr": "format(datum.value, '~s')", "titleAngle": 0,
        "titleAlign": "left", "titleAnchor": "end", "titleX": 14 - LEFT, "titleY": -12,
    }  # fmt: skip
    lines = _roof_layers(scene, across, up)
    body: Spec = {
        "width": WIDTH - LEFT,
        "height": HEIGHT,
        "data": {"name": "dots", "values": [_datum(dot) for dot in scene.dots]},
        "encoding": {"x": _axis("x", across, x_axis), "y": _axis("y", up, y_axis)},
        "layer": [*lines[:-1], *_dot_layers(), *lines[-1:]],
    }
    return ChartView(body)


def _axis(name: str, ends: tuple[float, float], axis: Mapping[str, object]) -> Spec:
    scale = {"type": "log", "domain": list(ends), "nice": False}
    return number(name, title=axis["title"], scale=scale, axis={**axis, "values": _ticks(*ends)})


def _ticks(low: float, high: float) -> list[float]:
    """Values of the tick marks: powers of ten, or also two and five times these."""
    for factors in ((1, 2, 5), (1, 3), (1,)):
        first, last = floor(log10(low)), floor(log10(high)) + 1
        found = [factor * 10.0**n for n in range(first, last + 1) for factor in factors]
        found = [value for value in found if low <= value <= high]
        if len(found) <= TICKS:
            return found
    return found[:: -(-len(found) // TICKS)]


def _datum(dot: Dot) -> Spec:
    seconds, roof = dot.facts
    rate = rate_text(dot.flops_s, "FLOP/s")
    intensity = f"{ratio_text(Fraction(dot.intensity))} FLOP/B"
    return {
        "x": dot.intensity, "y": dot.flops_s, "name": visible(dot.name), "op": visible(dot.op),
        "share": dot.share, "share_text": share_of_time(dot.share),
        "rate": rate, "intensity": intensity,
        "said": f"{visible(dot.name)}: {rate} at {intensity}", "time": seconds, "roof": roof,
        "area": _area(dot.share), "kind": KINDS[not dot.has_macs],
        "layer": dot.layers[0], "layers": list(dot.layers[:MOST_LAYERS]),
        **span(dot.layers), "count": dot.count,
    }  # fmt: skip


def _area(share: float) -> float:
    return LEAST_AREA + WHOLE_AREA * share


def _dot_layers() -> list[Spec]:
    tips = {
        "name": "layer", "op": "type", "time": "time", "share_text": "share of the time",
        "rate": "performance", "intensity": "intensity", "roof": "of its roof",
    }  # fmt: skip
    colours = text("kind", legend=None, scale={"domain": list(KINDS), "range": "kinds"})
    shapes = text("kind", legend=None, scale={"domain": list(KINDS), "range": SHAPES})
    area = number("area", scale=None, legend=None)
    mark = {"type": "point", "style": "dot", "filled": True}
    said = {"tooltip": tooltips(tips), "description": text("said")}
    dots = {"fill": colours, "stroke": colours, "shape": shapes, "size": area}
    return [
        layer({**mark, "aria": True}, {**dots, **said}),
        layer({**mark, "style": "chosen", "opacity": 1}, {"size": area}, test=CHOSEN),
    ]


def _roof_layers(scene: Scene, across: tuple[float, float], up: tuple[float, float]) -> list[Spec]:
    """Lines of peaks and bandwidths with their texts, each on its line."""
    if not scene.peaks:
        return []
    top = max(peak.flops.best for peak in scene.peaks)
    fastest = max((level.rate.best for level in scene.levels), default=0.0)
    lines: list[Spec] = []
    for peak in scene.peaks:
        begin = max(across[0], peak.flops.best / fastest) if fastest else across[0]
        lines.append(
            {
                "x": begin, "x2": across[1], "y": peak.flops.best, "y2": peak.flops.best,
                "name": "peak", "text": _peak_text(peak), "tx": across[1], "ty": peak.flops.best,
                "side": "right",
            }
        )  # fmt: skip
    for n, level in enumerate(scene.levels):
        rate = level.rate.best
        begin, end = max(across[0], up[0] / rate), min(across[1], top / rate)
        if begin >= end:
            continue
        part = (n + 1) / (len(scene.levels) + 1)
        middle = begin ** (1 - part) * end**part
        lines.append(
            {
                "x": begin, "x2": end, "y": begin * rate, "y2": end * rate, "name": level.name,
                "text": _level_text(level), "tx": middle, "ty": middle * rate,
                "side": "above" if rate == fastest else "below",
            }
        )  # fmt: skip
    rise = log10(across[1] / across[0]) / log10(up[1] / up[0])
    near = [dot.share for dot in scene.dots if dot.flops_s > top / 2]
    return _lines(lines, rise, sqrt(_area(max(near, default=0.0)) / pi))


def _lines(lines: list[Spec], rise: float, radius: float) -> list[Spec]:
    """Layers of lines, of halos of their texts, and last of the texts, over the dots."""
    data = {"name": "roofs", "values": lines}
    angle = {"expr": f"-atan(height / width * {rise:.6f}) * 180 / PI"}  # a slope of 1
    dashes = {"domain": ["peak", *DASHES], "range": [[1, 0], *DASHES.values()]}
    dash = text("name", legend=None, scale=dashes)
    ends = {"x2": {"field": "x2"}, "y2": {"field": "y2"}, "strokeDash": dash}
    marks: dict[str, Spec] = {  # by where the text stands
        "right": {"align": "right", "dy": -9 - round(radius)},
        "above": {"align": "center", "dy": -9, "angle": angle},
        "below": {"align": "center", "dy": 10, "angle": angle},
    }
    label = {"x": number("tx"), "y": number("ty"), "text": text("text")}

    def texts(style: str) -> Spec:
        parts = [
            layer({"type": "text", "style": style, **mark}, label, test=f"datum.side === '{side}'")
            for side, mark in marks.items()
        ]
        return {"data": data, "layer": parts}

    return [
        layer({"type": "rule", "style": "roof"}, ends, data=data),
        texts("halo"),
        texts("value"),
    ]


def _peak_text(peak: Peak) -> str:
    unit = "OP/s" if peak.dtype.startswith("int") else "FLOP/s"
    return f"{rate_text(peak.flops.best, unit)}, products in {peak.dtype}"


def _level_text(level: Level) -> str:
    return f"{level.name} {rate_text(level.rate.best, 'B/s')}"
