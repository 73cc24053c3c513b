"""Bytes of activations alive while each layer runs, the peak, and what is alive there."""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct

from layerscope.errors import UsageError
from layerscope.escaping import visible
from layerscope.plot.bars import BYTES, GAP, Bar, Measure, bars, names_width, unit_of
from layerscope.plot.parts import layer_text
from layerscope.plot.specification import (
    CHOSEN,
    WIDTH,
    Caption,
    ChartView,
    layer,
    number,
    specification,
    text,
    tooltips,
)
from layerscope.plot.text_width import shortened, text_width
from layerscope.plot.theme import LABEL, Spec, tone
from layerscope.report import Report
from layerscope.report.numbers import bytes_text, counted, marked, share_text

HEIGHT = 280
LEFT = 62  # pixels of the labels and the title of the vertical axis
MOST_STEPS = 1000
MOST_NAME = 240  # pixels of the names of tensors under the timeline
MOST_ALIVE = 8  # bars of tensors alive at the peak
LEAST_MODULES, MOST_MODULES, MOST_DEPTH = 3, 40, 6  # of brackets under the axis
MOST_MODULE = 160  # pixels of the name of a module
TEXT_WIDTH = 0.55  # of the axes, that the text at the peak takes at most
X, Y = number("n"), number("bytes")
SPAN = {"x": X, "x2": {"field": "end"}}
LEVEL = {**SPAN, "y": Y}
STEP = "datum.n < datum.end"  # false for the end of the outline


class MemoryStep(Struct, frozen=True):
    """Consecutive layers that are drawn as one step: the one with most bytes alive, and if any
    of them lacks figures or is a lower bound.
    """

    start: int
    end: int
    layer: int
    alive_bytes: int
    bounded: bool  # the bytes of any of them are a lower bound
    unknown: int  # layers without figures


def memory(report: Report) -> Spec:
    """Memory over execution, and below it what is alive at the peak."""
    rows = _alive_bars(report)
    left = max(LEFT, names_width(rows, MOST_NAME) + GAP)
    views = [_timeline(report, left), *([_alive(report, rows, left)] if rows else [])]
    return specification(_caption(report), views)


def timeline(report: Report) -> Spec:
    """Memory over execution alone."""
    return specification(_caption(report), [_timeline(report, LEFT)])


def alive(report: Report) -> Spec:
    """What is alive at the peak alone."""
    rows = _alive_bars(report)
    if not rows:
        raise UsageError(f"{report.name}: no tensor is alive at the peak")
    view = _alive(report, rows, names_width(rows) + GAP)
    return specification(Caption(view.heading), [view])


def _caption(report: Report) -> Caption:
    memory = report.memory
    if not memory.alive_bytes:
        raise UsageError(f"{report.name}: the network has no layers")
    how = "in-place layers overwrite their input" if memory.in_place else "nothing in place"
    notes = [f"Inputs and activations alive at each step, without weights; {how}."]
    if "peak_activation_bytes" in report.lower_bounds:
        what = "Memory of unknown layers is" if memory.complete else "Tensors of unknown shape are"
        notes.append(f"{what} left out: the bytes are lower bounds (≥).")
    size = _step_size(report)
    if size > 1:
        notes.append(
            f"Each step is the most of {size:,} consecutive layers, since there are "
            f"{len(memory.alive_bytes):,}."
        )
    return Caption(f"{report.name}, batch {report.batch}: activations alive", tuple(notes))


def _step_size(report: Report) -> int:
    return -(-len(report.memory.alive_bytes) // MOST_STEPS)


def _steps(report: Report) -> list[MemoryStep]:
    sizes, bounded, layers = report.memory.alive_bytes, report.memory.bounded, report.layers
    step = _step_size(report)
    found = []
    for start in range(0, len(sizes), step):
        numbers = range(start, min(start + step, len(sizes)))
        most = max(numbers, key=lambda n: sizes[n])
        is_bounded = any(layers[n].name in bounded for n in numbers)
        unknown = sum(layers[n].lacks_figures for n in numbers)
        found.append(MemoryStep(start, numbers[-1] + 1, most, sizes[most], is_bounded, unknown))
    return found


def _datum(report: Report, step: MemoryStep) -> Spec:
    shown, size = report.layers[step.layer], layer_text(report, step.layer, "alive")
    return {
        "n": step.start, "end": step.end, "middle": (step.start + step.end) / 2,
        "bytes": step.alive_bytes, "text": size,
        "name": visible(shown.name), "kind": visible(shown.op), "layer": step.layer,
        "first": step.start, "last": step.end - 1, "bounded": step.bounded,
        "unknown": step.unknown, "step": f"{step.layer + 1:,} of {len(report.layers):,}",
        "said": f"{visible(shown.name)}: {size} alive",
    }  # fmt: skip


def _timeline(report: Report, left: float) -> ChartView:
    steps = _steps(report)
    count, most = len(report.layers), report.memory.peak_bytes
    modules = _modules(report)
    scale, unit = unit_of(most, BYTES)
    x_axis = {
        "title": "layers in execution order", "grid": False, "labels": not modules, "format": ",d",
        "tickMinStep": 1, "tickCount": 10, "titlePadding": 30 if modules else 6,
    }  # fmt: skip
    y_axis = {
        "title": f"alive ({unit})", "titleAngle": 0, "titleAlign": "right", "titleAnchor": "end",
        "titleX": -7, "titleY": -10, "tickCount": 5,
        "labelExpr": f"format(datum.value / {scale:g}, '~g')",
    }  # fmt: skip
    first = {**X, "scale": {"domain": [0, count], "nice": False}, "axis": x_axis}
    second = {**Y, "scale": {"domain": [0, most * 1.12 or 1], "nice": False}, "axis": y_axis}
    area = {"type": "area", "style": "area", "interpolate": "step-after"}
    line = {"type": "line", "style": "outline", "interpolate": "step-after"}
    tips = tooltips({"name": "layer", "kind": "type", "text": "alive", "step": "step"})
    said = {"tooltip": tips, "description": text("said")}
    foot = {"datum": 0, "type": "quantitative"}
    layers = [
        layer(area, {"x": first, "y": second}),
        layer(line, {"x": X, "y": Y}),
        layer(
            {"type": "rule", "style": "bound"}, {**SPAN, "y": Y}, test=f"datum.bounded && {STEP}"
        ),
        layer({"type": "rect", "style": "chosen_step"}, SPAN, test=f"{CHOSEN} && {STEP}"),
        *_peak(report, steps),
        layer(
            {"type": "text", "style": "unknown", "text": "?", "dy": -8},
            {"x": number("middle"), "y": foot},
            test=f"datum.unknown > 0 && {STEP}",
        ),
        *modules,
        layer({"type": "rect", "opacity": 0, "aria": True}, {**SPAN, **said}, test=STEP),
    ]
    values = [_datum(report, step) for step in steps]
    last = {**values[-1], "n": count}  # where the outline ends; no step
    data = {"name": "steps", "values": [*values, last]}
    return ChartView({"width": int(WIDTH - left), "height": HEIGHT, "data": data, "layer": layers})


def _peak(report: Report, steps: list[MemoryStep]) -> list[Spec]:
    """The peak as a line, and the layer it is at."""
    at = max(steps, key=lambda step: step.alive_bytes)
    count = len(report.layers)
    size = marked(bytes_text(at.alive_bytes), report.sign("peak_activation_bytes"))
    rest = f", step {at.layer + 1:,} of {count:,}"
    room = (WIDTH - LEFT) * TEXT_WIDTH - text_width(f"{size} at {rest}", LABEL)
    name = shortened(report.layers[at.layer].name, room, LABEL)
    middle = (at.start + at.end) / 2
    point = {
        "n": middle, "bytes": at.alive_bytes, "text": f"{size} at {name}{rest}", "layer": at.layer
    }  # fmt: skip
    data = {"name": "peak", "values": [point]}
    side = {"align": "left", "dx": -6} if middle < count / 2 else {"align": "right", "dx": 6}
    dot = {"type": "point", "style": "peak_dot", "filled": True, "size": 55, "opacity": 1}
    label = {"type": "text", "style": "name", "dy": -11, **side}
    return [
        layer({"type": "rule", "style": "peak"}, {"y": Y}, data=data),
        layer(dot, {"x": X, "y": Y}, data=data),
        layer(label, {"x": X, "y": Y, "text": text("text")}, data=data),
    ]


def _module_runs(report: Report, depth: int) -> list[tuple[str, int, int]]:
    """Name, first and last layer of the modules at a depth, one for each run without a break."""
    runs: list[tuple[str, int, int]] = []
    before: tuple[str, ...] = ()
    for n, each in enumerate(report.layers):
        path = each.scope[:depth]
        if len(path) == depth and path == before:
            runs[-1] = (*runs[-1][:2], n + 1)
        elif len(path) == depth:
            runs.append((path[-1], n, n + 1))
        before = path
    return runs


def _modules(report: Report) -> list[Spec]:
    """Brackets under the axis: modules at the least depth that has three of several layers."""
    deepest = max((len(each.scope) for each in report.layers), default=0)
    for depth in range(1, min(deepest, MOST_DEPTH) + 1):
        runs = _module_runs(report, depth)
        if sum(1 for _, start, end in runs if end - start > 1) >= LEAST_MODULES:
            break
    else:
        return []
    longest = sorted(runs, key=lambda run: run[1] - run[2])[:MOST_MODULES]
    found = sorted(longest, key=lambda run: run[1])
    values = []
    for path, start, end in found:
        name = shortened(path, MOST_MODULE, LABEL)
        pixels = round(text_width(name, LABEL))
        middle = (start + end) / 2
        values.append({"n": start, "end": end, "middle": middle, "name": name, "pixels": pixels})
    data = {"name": "modules", "values": values}
    wide = f"(datum.end - datum.n) * width / {len(report.layers)}"
    foot = {"value": "height"}
    rule = {"type": "rule", "style": "bracket", "xOffset": 1, "x2Offset": -1, "yOffset": 7}
    label = {"type": "text", "style": "faint", "yOffset": 19}
    named = {"x": number("middle"), "y": foot, "text": text("name")}
    return [
        layer(rule, {**SPAN, "y": foot}, test=f"{wide} > 4", data=data),
        layer(label, named, test=f"{wide} > datum.pixels", data=data),
    ]


def _alive_bars(report: Report) -> list[Bar]:
    """The largest tensors alive at the peak, named by the layers that write them."""
    memory, sign = report.memory, report.sign("peak_activation_bytes")
    writers = {name: n for n, node in enumerate(report.graph.nodes) for name in node.outputs}
    return [
        Bar(
            report.layers[writers[name]].name if name in writers else f"{name} (input)",
            size, bytes_text(size), share_text(size, memory.peak_bytes, sign),
            tone(Fraction(size, memory.peak_bytes)), "", writers.get(name),
        )
        for name, size in memory.peak_alive[:MOST_ALIVE]
    ]  # fmt: skip


def _alive(report: Report, rows: list[Bar], left: float) -> ChartView:
    memory = report.memory
    peak = marked(bytes_text(memory.peak_bytes), report.sign("peak_activation_bytes"))
    heading = f"Alive at the peak: {counted(len(memory.peak_alive), 'tensor')}, {peak}"
    if len(memory.peak_alive) > MOST_ALIVE:
        heading += f"; the {MOST_ALIVE} largest"
    measure = Measure("bytes", "share of the peak", BYTES, "tensors", whole_value=memory.peak_bytes)
    view = bars(rows, measure, left)
    return ChartView(view.body, view.variables, heading)
