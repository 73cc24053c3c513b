"""Charts as Vega draws them: marks, texts and their pixels, from the scene graph of vl-convert."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import vl_convert

from layerscope import Builder, analyze
from layerscope.plot.chart import VEGA_LITE
from layerscope.plot.text_width import text_width
from layerscope.report import Report
from layerscope.report.measurement import (
    LayerTime,
    Level,
    Machine,
    Measurement,
    MemoryUse,
    Peak,
    Rate,
    Run,
    Timing,
    total_s,
)

Spec = dict[str, Any]
NARROWER = 0.8  # texts in the font that vl-convert measures by, beside `text_width`


def rate(best: float) -> Rate:
    return Rate(best, best, 5)


HERE = Machine(
    "a processor of this test",
    2,
    (Peak("fp32", 1, rate(1e11), "test"), Peak("fp32", 2, rate(2e11), "test")),
    tuple(
        Level(name, 2, size, rate(speed))
        for name, size, speed in (("L2", 1 << 20, 9e10), ("L3", 1 << 24, 8e10), ("DRAM", 0, 2e10))
    ),
    "2026-01-01T00:00:00+00:00",
)


def measured(report: Report, machine: Machine | None, *, runs: int = 1) -> Measurement:
    """A run of one row per layer, the first slowest, and a row that no layer has."""
    times = [1e-3 / (n + 1) for n in range(len(report.layers))]
    rows = [
        LayerTime(layer.name, "layer", (layer.name,), time, time, time)
        for layer, time in zip(report.layers, times, strict=True)
    ]
    rows.append(LayerTime("unattributed", "unattributed", (), 1e-3, 1e-3, 1e-3))
    whole = total_s(rows)
    timing = Timing(whole, whole, 0.0, 0.0, whole, whole, 0.0, whole, 1.25, None, None, None, ())
    found = [
        Run("engine", "1", 2, "off" if n else "on", timing, tuple(rows), MemoryUse(None, None, 0))
        for n in range(runs)
    ]
    return Measurement(report.name, {}, 1, "fp32", tuple(found), machine, "0", "")


def chain(count: int) -> Report:
    """A network without modules: convolutions and activations in turn."""
    b = Builder("chain")
    x = b.input("data", (1, 4, 8, 8))
    for n in range(count // 2):
        x = b.activation("relu", b.conv(x, 4, 3, padding=1, name=f"conv{n}"), name=f"relu{n}")
    return analyze(b.build())


def long_names() -> Report:
    """Layers with names that are wider than the picture, and ops of many kinds."""
    b = Builder("a_network_whose_name_is_as_long_as_the_path_of_a_file/" * 3)
    x = b.input("data", (1, 3, 32, 32))
    x = b.conv(x, 8, 3, name="block" + ".MMMMMMMMMM" * 12 + ".conv")
    for op in ("relu", "sigmoid", "tanh", "gelu", "silu", "hard_swish", "elu", "softplus", "abs"):
        x = b.activation(op, x, name=f"block.{op}" + "W" * 100)
    return analyze(b.build())


class Drawn(NamedTuple):
    """An item of the scene graph, in pixels of the picture."""

    kind: str  # rect, text, symbol …
    role: str
    mark: str
    x: float
    y: float
    item: Spec


class Scene(NamedTuple):
    """A drawn chart."""

    width: float
    height: float
    items: list[Drawn]

    @property
    def texts(self) -> list[Drawn]:
        return [
            each for each in self.items
            if each.kind == "text" and each.item.get("text") and each.item.get("opacity", 1)
        ]  # fmt: skip

    def of(self, kind: str) -> list[Drawn]:
        """Marks of the data of a kind, no parts of axes."""
        return [each for each in self.items if each.kind == kind and each.role == "mark"]


def drawn(spec: Spec) -> Scene:
    """The chart as Vega lays it out."""
    found = vl_convert.vegalite_to_scenegraph(spec, vl_version=VEGA_LITE, allowed_base_urls=[])
    left, top = found["origin"]
    items = list(_items(found["scenegraph"], left, top))
    return Scene(found["width"], found["height"], items)


def _items(mark: Spec, x: float, y: float) -> Iterator[Drawn]:
    for item in mark.get("items", ()):
        across, down = x + item.get("x", 0.0), y + item.get("y", 0.0)
        if mark["marktype"] != "group":
            role, name = mark.get("role", ""), mark.get("name") or ""
            yield Drawn(mark["marktype"], role, name, across, down, item)
        for inner in item.get("items", ()):
            yield from _items(inner, across, down)


def boxes(scene: Scene) -> list[tuple[float, float, float, float, str]]:
    """Left, right, top and bottom of every line of text that is not rotated, and the text."""
    found = []
    for each in scene.texts:
        item, size = each.item, float(each.item.get("fontSize", 11))
        if item.get("angle") or item.get("stroke"):  # a halo lies under its own text
            continue
        lines = item["text"] if isinstance(item["text"], list) else [item["text"]]
        for n, line in enumerate(lines):
            # The estimate is from above; in the font of the test machine texts are narrower.
            wide = text_width(line, size, bold=item.get("fontWeight") == 600) * NARROWER
            shift = {"left": 0.0, "center": 0.5, "right": 1.0}[item.get("align", "left")]
            left = each.x + item.get("dx", 0.0) - shift * wide
            rise = {"top": 0.0, "middle": 0.5}.get(item.get("baseline", "alphabetic"), 0.8)
            top = each.y + item.get("dy", 0.0) - rise * size + n * item.get("lineHeight", size)
            found.append((left, left + wide, top, top + size, str(line)))
    return found


def said(spec: Spec) -> str:
    """Title and notes of a chart."""
    return " ".join([spec["usermeta"]["title"], *spec["usermeta"]["notes"]])


def values(spec: Spec, name: str = "rows") -> list[Spec]:
    """The data of that name in a specification."""
    found = [each for each in _nested(spec) if each.get("name") == name and "values" in each]
    rows: list[Spec] = found[0]["values"]
    return rows


def _nested(value: object) -> Iterator[Spec]:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _nested(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _nested(each)


def keyed(value: object, keys: frozenset[str]) -> list[object]:
    """Everything in a specification under these keys, outside of data and variables."""
    found = []
    for each in _nested(value):
        for key, inner in each.items():
            if key in keys:
                found.append(inner)
    return found
