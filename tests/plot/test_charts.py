"""Every chart as Vega draws it: its figures are the report's, and names are only texts."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import lru_cache
from math import log10

import pytest

from layerscope import analyze, predict
from layerscope.api.plotting import page_charts
from layerscope.builder import Builder
from layerscope.engines.accelerators import machine_of
from layerscope.errors import UnknownName, UsageError
from layerscope.plot.activations import activations
from layerscope.plot.chart import VEGA_LITE, themed
from layerscope.plot.costs import costs
from layerscope.plot.memory import MOST_STEPS, memory, timeline
from layerscope.plot.params import params
from layerscope.plot.parts import MOST
from layerscope.plot.roofline import LEAST_AREA, WHOLE_AREA, attainable_roofline, measured_roofline
from layerscope.plot.roofs import roofs_of, roofs_of_run
from layerscope.plot.theme import HEAT_STEPS, THEMES, config, tone
from layerscope.plot.times import predicted_times, times
from layerscope.report import Report
from tests.plot.drawings import (
    HERE,
    Spec,
    boxes,
    chain,
    drawn,
    keyed,
    long_names,
    measured,
    said,
    values,
)
from tests.report.test_bounds import odd

vl_convert = pytest.importorskip("vl_convert")
Captured = pytest.CaptureFixture[str]

NETWORKS = ("lenet5", "resnet50", "vit_b_16", "odd", "long names", "chain of 10,000")
EXPRESSIONS = frozenset({"labelExpr", "filter", "expr", "test", "calculate", "signal", "update"})


@lru_cache
def report_of(name: str) -> Report:
    if name == "odd":
        return analyze(odd())
    if name == "long names":
        return long_names()
    return chain(10_000) if name.startswith("chain") else analyze(name)


@lru_cache
def charts(name: str) -> dict[str, Spec]:
    """Every chart of a network, without a run, with a run and predicted."""
    report = report_of(name)
    a_run, other = measured(report, HERE, runs=2), measured(report, None)
    found: dict[str, Spec] = {
        "memory": memory(report),
        "costs": costs(report),
        "params": params(report),
        "activations": activations(report),
        "time": times(report, a_run),
        "run": measured_roofline(report, a_run, roofs_of_run(report, a_run)),
        "no roofs": measured_roofline(report, other, None),
        "here": attainable_roofline(report, roofs_of(HERE, "fp32", 2)),
        "a100": attainable_roofline(report, roofs_of(machine_of("a100"), "fp32", 2)),
        "predicted": predicted_times(predict(report, on="rtx4090")),
    }
    return found


@pytest.mark.parametrize("network", NETWORKS)
def test_vega_draws_every_chart_without_a_warning(network: str, capfd: Captured) -> None:
    for name, spec in charts(network).items():
        svg = vl_convert.vegalite_to_svg(
            spec, vl_version=VEGA_LITE, show_warnings=True, allowed_base_urls=[]
        )
        assert svg.startswith("<svg"), name
        out, err = capfd.readouterr()
        assert not out + err, (name, out, err)
        assert len(json.dumps(spec)) < 500_000, name


@pytest.mark.parametrize("network", NETWORKS)
def test_no_text_covers_another_or_leaves_the_picture(network: str) -> None:
    for name, spec in charts(network).items():
        scene = drawn(spec)
        found = boxes(scene)
        assert scene.width < 1000
        for n, (left, right, top, bottom, words) in enumerate(found):
            assert left >= 0, (name, words)
            assert right <= scene.width, (name, words)
            assert 0 <= top < bottom <= scene.height, (name, words)
            for other in found[n + 1 :]:
                apart = right <= other[0] or other[1] <= left or bottom <= other[2]
                assert apart or other[3] <= top, (name, words, other[4])


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("what", ["costs", "params"])
def test_bars_of_parts_add_up_to_the_total(network: str, what: str) -> None:
    report = report_of(network)
    rows = values(charts(network)[what])
    total = report.totals.macs if what == "costs" else report.totals.params
    assert 0 < len(rows) <= MOST
    assert sum(row["value"] for row in rows if row["value"] is not None) == total
    for row in rows:
        assert row["text"] == ("?" if row["value"] is None else f"{row['value']:,}")
        if row["value"] is not None:
            share = row["share"].strip("≤%<")
            assert float(share) == pytest.approx(100 * row["value"] / total, abs=0.1)


@pytest.mark.parametrize("what", ["costs", "params"])
def test_bars_of_modules_are_sums_of_their_layers(what: str) -> None:
    report = report_of("resnet50")
    for row in values(charts("resnet50")[what]):
        inside = [
            layer for layer in report.layers
            if layer.name == row["name"] or layer.name.startswith(f"{row['name']}.")
        ]  # fmt: skip
        figures = [layer.ops.mac if what == "costs" else layer.params for layer in inside]
        assert row["value"] == sum(figures), row
        assert row["layer"] == report.layers.index(inside[0])
    names = [row["name"] for row in values(charts("resnet50")[what])]
    assert "layer1.0" in names
    assert "16 modules" not in said(charts("resnet50")[what])


BARS = ("costs", "params", "activations", "time", "predicted")


@pytest.mark.parametrize("network", NETWORKS)
def test_drawn_bars_are_as_long_as_their_figures(network: str) -> None:
    for name in BARS:
        spec = charts(network)[name]
        rows = [row for row in values(spec) if row["value"] is not None]
        scene = drawn(spec)
        found = [each for each in scene.of("rect") if each.item.get("description")]
        assert [each.item["description"] for each in found] == [row["said"] for row in rows]
        longest = max(each.item["width"] for each in found)
        most = max(row["value"] for row in rows)
        for each, row in zip(found, rows, strict=True):
            assert each.item["width"] / longest == pytest.approx(row["value"] / most, abs=1e-3)
        words = {str(each.item["text"]) for each in scene.texts}
        assert {row["beside"] for row in rows} <= words
        assert words.issuperset("?" for row in values(spec) if row["value"] is None)


@pytest.mark.parametrize("network", NETWORKS)
def test_drawn_memory_is_that_of_the_liveness_walk(network: str) -> None:
    report, spec = report_of(network), timeline(report_of(network))
    steps = values(spec, "steps")[:-1]
    size = -(-len(report.layers) // MOST_STEPS)
    expected = [
        max(report.memory.alive_bytes[n : n + size]) for n in range(0, len(report.layers), size)
    ]
    assert [step["bytes"] for step in steps] == expected
    assert ("the most of 10 consecutive layers" in said(spec)) == (size == 10)
    scene = drawn(spec)
    area = scene.of("area")
    foot = max(each.y for each in scene.items if each.role == "axis-grid")
    highest = max(foot - each.y for each in area)
    for each, step in zip(area, [*steps, steps[-1]], strict=True):
        part = step["bytes"] / max(expected)
        assert (foot - each.y) / highest == pytest.approx(part, abs=0.01)
    words = [str(each.item["text"]) for each in scene.texts]
    most = steps[expected.index(max(expected))]
    peak = [text for text in words if text.lstrip("≥").startswith(f"{most['text']} at")]
    assert len(peak) == 1
    assert peak[0].endswith(f" of {len(report.layers):,}")


def test_alive_tensors_make_up_the_peak() -> None:
    report = report_of("resnet50")
    found = values(memory(report))
    assert sum(row["value"] for row in found) == report.memory.peak_bytes
    assert [row["name"] for row in found] == [
        "layer1.0.bn3", "layer1.0.downsample.0", "layer1.0.downsample.1"
    ]  # fmt: skip
    assert {row["beside"] for row in found} == {"3.21 MB · 33.3%"}


@pytest.mark.parametrize("network", ["lenet5", "resnet50", "vit_b_16"])
@pytest.mark.parametrize("what", ["run", "here", "a100"])
def test_drawn_dots_are_where_their_figures_are(network: str, what: str) -> None:
    report, spec = report_of(network), charts(network)[what]
    dots = values(spec, "dots")
    scene = drawn(spec)
    found = [each for each in scene.of("symbol") if each.item.get("description")]
    assert [each.item["description"] for each in found] == [dot["said"] for dot in dots]
    shown = {layer.name for layer in report.layers if layer.ops.flops and layer.moved_bytes}
    assert {dot["name"] for dot in dots} == shown
    assert sum(dot["share"] for dot in dots) <= 1 + 1e-9
    low, high = min(dots, key=lambda dot: dot["x"]), max(dots, key=lambda dot: dot["x"])
    pixels = {dot["name"]: each for dot, each in zip(dots, found, strict=True)}
    wide = log10(high["x"] / low["x"])
    span = pixels[high["name"]].x - pixels[low["name"]].x
    for dot in dots:
        layer = report.by_name[dot["name"]]
        assert dot["x"] == pytest.approx(layer.ops.flops / layer.moved_bytes)
        part = (pixels[dot["name"]].x - pixels[low["name"]].x) / span
        assert part == pytest.approx(log10(dot["x"] / low["x"]) / wide, abs=1e-3)
        assert dot["area"] == pytest.approx(LEAST_AREA + WHOLE_AREA * dot["share"])
        assert pixels[dot["name"]].item["size"] == pytest.approx(dot["area"])


@pytest.mark.parametrize("what", ["run", "no roofs", "here", "a100"])
def test_dots_of_a_large_network_are_merged_and_keep_the_time(what: str) -> None:
    report, spec = report_of("chain of 10,000"), charts("chain of 10,000")[what]
    dots = values(spec, "dots")
    assert len(dots) <= 1000
    assert "10,000" in said(spec)
    if what in ("here", "a100"):
        assert sum(dot["count"] for dot in dots) == len(report.layers)
        assert sum(dot["share"] for dot in dots) == pytest.approx(1)


def test_contention_stands_beside_a_measured_roofline() -> None:
    assert "Contention 1.25." in said(charts("lenet5")["run"])
    assert "Contention 1.25." in said(charts("lenet5")["time"])


def test_unknown_figures_are_marks_and_bounds_have_signs() -> None:
    found = charts("odd")
    unknown = [row for row in values(found["costs"]) if row["value"] is None]
    assert [row["name"] for row in unknown] == ["stem.warp"]
    assert "≥8,192 in all" in said(found["costs"])
    steps = values(found["memory"], "steps")
    assert {step["name"] for step in steps if step["unknown"]} == {"stem.warp"}
    assert any(step["bounded"] and step["text"].startswith("≥") for step in steps)
    marks = [each for each in drawn(found["memory"]).texts if each.item["text"] == "?"]
    assert len(marks) == 1


def test_predicted_bars_have_intervals_and_unknown_ones_come_first() -> None:
    found = predict(report_of("odd"), on="rtx4090")
    rows = values(predicted_times(found))
    assert rows[0]["value"] is None
    assert "lower bound" in said(predicted_times(found))
    for row in rows:
        if row["low"] is not None:
            assert row["low"] < row["value"] < row["high"]


# Names

HOSTILE = (
    "datum.value", "</script><img src=x onerror=alert(1)>", "javascript:alert(1)",
    "{'signal': 'alert(1)'}", "'+alert(1)+'", "names[0]", "url(http://localhost/x)", "a\u202eb\n",
)  # fmt: skip


def named(names: tuple[str, ...]) -> Report:
    b = Builder(names[0])
    x = b.input("data", (1, 3, 8, 8))
    for name in names:
        x = b.conv(x, 4, 3, padding=1, name=name)
    return analyze(b.build())


def all_of(report: Report) -> dict[str, Spec]:
    found = measured(report, HERE)
    return {
        **page_charts(report, found),
        "both": memory(report),
        "a100": page_charts(report, None, machine_of("a100"))["roofline"],
        "predicted": predicted_times(predict(report, on="a100")),
    }


def test_names_are_texts_and_never_expressions() -> None:
    plain = all_of(named(tuple(f"layer{n}" for n in range(len(HOSTILE)))))
    hostile = all_of(named(HOSTILE))
    assert plain.keys() == hostile.keys()
    for name, spec in hostile.items():
        body = {key: value for key, value in spec.items() if key != "data"}
        assert set(map(str, keyed(body, EXPRESSIONS))) <= {
            str(each) for each in keyed(plain[name], EXPRESSIONS)
        } | {str(each) for each in keyed(body, EXPRESSIONS) if _is_width(each)}, name
        assert not keyed(spec, frozenset({"url", "href", "loader"}))
        text = json.dumps(spec, ensure_ascii=False)
        assert "\u202e" not in text
        svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE, allowed_base_urls=[])
        assert "<img" not in svg
        assert "<script" not in svg
        words = " ".join(str(each.item["text"]) for each in drawn(spec).texts)
        assert "datum.value" in words, name


def _is_width(expression: object) -> bool:
    """Whether an expression differs by the widths of names alone."""
    return str(expression).startswith(("max(width -", "{'expr': 'max(width -"))


# Themes


@pytest.mark.parametrize("theme", THEMES)
def test_themes_change_the_config_alone(theme: str, capfd: Captured) -> None:
    for spec in charts("resnet50").values():
        chart = themed(spec, theme)
        assert {**chart.spec, "config": 0} == {**spec, "config": 0}
        svg = chart.to_svg()
        surface, ink = THEMES[theme].surface, THEMES[theme].ink[0]
        assert f'fill="{surface}"' in svg
        assert f'fill="{ink}"' in svg
    assert not capfd.readouterr().err


def test_no_colour_stands_outside_of_the_config() -> None:
    for spec in charts("resnet50").values():
        body = {key: value for key, value in spec.items() if key not in ("config", "data")}
        assert "#" not in json.dumps(body)


def _luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", THEMES)
def test_texts_have_contrast(theme: str) -> None:
    found = THEMES[theme]
    for colour in (*found.ink, found.warning, found.accent):
        light, dark = sorted((_luminance(colour), _luminance(found.surface)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, colour


def test_tones_double_and_are_visible() -> None:
    for n, step in enumerate(HEAT_STEPS):
        assert tone(step) == f"heat{max(n + 2, 3)}"
        assert tone(step - Fraction(1, 10**6)) == f"heat{max(n + 1, 3)}"
    assert tone(0) == "heat3"
    assert tone(1) == "heat7"


def test_an_unknown_theme_is_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean dark"):
        config("darker")


# What the page takes


def test_charts_of_the_page_are_single_views() -> None:
    report = report_of("resnet50")
    found: dict[str, Spec] = page_charts(report, measured(report, HERE))
    assert {"memory", "alive", "costs", "params", "activations", "roofline", "time"} == set(found)
    for spec in found.values():
        assert "vconcat" not in spec
        assert {"name": "chosen", "value": []} in spec["params"]
        assert spec["usermeta"]["title"]
    without = page_charts(report)
    assert set(without) == {"memory", "alive", "costs", "params", "activations"}


def lit(spec: Spec, layers: list[int]) -> int:
    """How many marks are drawn in the accent colour if these layers are chosen."""
    variables = [each for each in spec["params"] if each["name"] != "chosen"]
    chosen = {**spec, "params": [*variables, {"name": "chosen", "value": layers}]}
    accent = THEMES["light"].accent
    return sum(1 for each in drawn(chosen).items if each.item.get("fill") == accent)


def test_chosen_layers_are_drawn_in_accent() -> None:
    report = report_of("resnet50")
    found: dict[str, Spec] = page_charts(report, measured(report, HERE))
    for name, spec in found.items():
        rows = values(spec, {"memory": "steps", "roofline": "dots"}.get(name, "rows"))
        number = max(row["layer"] for row in rows if row["layer"] is not None)
        assert lit(spec, []) == 0, name
        assert lit(spec, [number]) == 1, name


def test_a_bar_of_a_module_is_lit_for_its_layers() -> None:
    report, spec = report_of("resnet50"), charts("resnet50")["costs"]
    inside = [n for n, layer in enumerate(report.layers) if layer.name.startswith("layer1.0.")]
    assert len(inside) > 3
    for n in inside:
        assert lit(spec, [n]) == 1
    assert lit(spec, inside) == 1
    whole = [n for n, layer in enumerate(report.layers) if layer.name.startswith("layer1.")]
    assert lit(spec, whole) == 3
    assert lit(spec, [1]) == 0  # bn1, which has no MACs and no bar


def test_a_chart_of_nothing_is_refused() -> None:
    b = Builder("flat")
    b.activation("relu", b.input("x", (1, 4)), name="relu")
    report = analyze(b.build())
    with pytest.raises(UsageError, match="no layer has parameters"):
        params(report)
    assert "FLOPs by layer, 4 in all" in said(costs(report))  # it has no MACs
    assert "params" not in page_charts(report)
