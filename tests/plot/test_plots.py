"""Plots: what they leave out is said, rooflines have roofs, and no text covers another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from layerscope import Builder, analyze
from layerscope.cli import run
from layerscope.engines import cache
from layerscope.engines.accelerators import ACCELERATORS, machine_of
from layerscope.engines.machine import identity
from layerscope.errors import UsageError
from layerscope.plot import pictures, roofline
from layerscope.plot.svg import COLOURS, WIDTH
from layerscope.plot.text_width import shortened, text_width, wrapped
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
from tests.report.test_bounds import odd

Captured = pytest.CaptureFixture[str]


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
    timing = Timing(whole, whole, 0.0, 0.0, whole, whole, 0.0, whole, 1.0, None, None, None, ())
    found = [
        Run("engine", "1", 2, "off" if n else "on", timing, tuple(rows), MemoryUse(None, None, 0))
        for n in range(runs)
    ]
    return Measurement(report.name, {}, 1, "fp32", tuple(found), machine, "0", "")


def long_names() -> Report:
    """Layers with names that are wider than the picture, and more ops than colours."""
    b = Builder("a_network_whose_name_is_as_long_as_the_path_of_a_file/" * 3)
    x = b.input("data", (1, 3, 32, 32))
    x = b.conv(x, 8, 3, name="block" + ".MMMMMMMMMM" * 12 + ".conv")
    for op in ("relu", "sigmoid", "tanh", "gelu", "silu", "hard_swish", "elu", "softplus", "abs"):
        x = b.activation(op, x, name=f"block.{op}" + "W" * 100)
    return analyze(b.build())


def drawings(report: Report) -> Iterator[str]:
    """Every kind of plot of a report."""
    yield pictures.memory_steps(report)
    yield pictures.activation_bars(report)
    yield pictures.time_bars(report, measured(report, None, runs=2))
    for machine in (HERE, machine_of("a100")):
        yield roofline.attainable_roofline(report, roofline.roofs_of(machine, "fp32", 2))
        found = measured(report, machine, runs=2)
        yield roofline.measured_roofline(report, found, roofline.roofs_of_run(report, found))
    yield roofline.measured_roofline(report, measured(report, None), None)


def boxes(svg: str) -> list[tuple[float, float, float, float, str]]:
    """Left, right, top and bottom of every text that is not rotated, and the text."""
    found = []
    for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        if "transform" in element.attrib:
            continue
        words, size = element.text or "", float(element.attrib["font-size"])
        wide = text_width(words, size, bold="font-weight" in element.attrib)
        x, y = float(element.attrib["x"]), float(element.attrib["y"])
        shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[
            element.attrib.get("text-anchor", "start")
        ]
        left = x - shift * wide
        found.append((left, left + wide, y - 0.8 * size, y + 0.2 * size, words))
    return found


@pytest.mark.parametrize(
    "make", [lambda name=name: analyze(name) for name in ("vgg16", "resnet50", "vit_b_16", "nin")]
    + [long_names, lambda: analyze("lenet5")],
)  # fmt: skip
def test_no_text_covers_another_or_leaves_the_picture(make: Callable[[], Report]) -> None:
    for svg in drawings(make()):
        height = float(ElementTree.fromstring(svg).attrib["height"])
        found = boxes(svg)
        for n, (left, right, top, bottom, words) in enumerate(found):
            assert left >= 0, words
            assert right <= WIDTH, words
            assert 0 <= top < bottom <= height, words
            for other in found[n + 1 :]:
                apart = right <= other[0] or other[1] <= left or bottom <= other[2]
                assert apart or other[3] <= top, (words, other[4])
        assert not re.search(r'<text[^>]*fill="#(?!1f2328|424a53)', svg), "text is not dark"


def words_of(svg: str) -> str:
    return " ".join(element.text or "" for element in ElementTree.fromstring(svg).iter())


def test_bars_tell_what_they_leave_out() -> None:
    report = analyze("resnet50")
    words = words_of(pictures.activation_bars(report))
    sizes = sorted((layer.activation_bytes for layer in report.layers), reverse=True)
    rest = sum(sizes[pictures.MOST :])
    assert len(sizes) == 175
    assert f"150 more layers: {rest / sum(sizes):.1%} of the activations" in words
    found = measured(report, None)
    times = sorted((row.time_s or 0.0 for row in found.runs[0].rows), reverse=True)
    share = sum(times[pictures.MOST :]) / sum(times)
    assert f"151 more rows: {share:.1%} of the time" in words_of(pictures.time_bars(report, found))


def test_a_plot_of_all_layers_leaves_none_out() -> None:
    report = analyze("lenet5")
    assert len(report.layers) < pictures.MOST
    assert "more rows" not in words_of(pictures.time_bars(report, measured(report, None)))
    views = sum(1 for layer in report.layers if not layer.activation_bytes)
    words = words_of(pictures.activation_bars(report))
    assert "of the activations" not in words
    assert views == 0 or f"{views} more layer" in words


def test_unknown_layers_are_told() -> None:
    report = analyze(odd())
    assert "Activations of 1 layer are unknown" in words_of(pictures.activation_bars(report))
    assert "≥" in words_of(pictures.activation_bars(report))
    assert "≥" in words_of(pictures.memory_steps(report))
    roofs = roofline.roofs_of(HERE, "fp32", 2)
    words = words_of(roofline.attainable_roofline(report, roofs))
    assert "1 layer with unknown figures" in words


def dots(svg: str) -> dict[str, tuple[float, float]]:
    """FLOP/s and FLOP/B by the name of a dot, from the tooltips."""
    scale = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
    found = {}
    for text in re.findall(r"<circle[^>]*><title>([^<]*)</title>", svg):
        name, _, rest = text.partition(": ")
        match = re.search(r"([\d.]+) ([kMGTP]?)FLOP/s, ([\d.e+-]+) FLOP/B", rest)
        assert match, text
        found[name] = (float(match[1]) * scale[match[2]], float(match[3]))
    return found


@pytest.mark.parametrize("name, dtype", [("a100", "fp16"), ("a100", "fp32"), ("tpu-v4", "bf16")])
def test_layers_without_a_run_are_at_what_is_attainable(name: str, dtype: str) -> None:
    report = analyze("resnet50", dtype=dtype)
    svg = roofline.attainable_roofline(report, roofline.roofs_of(machine_of(name), dtype, 1))
    sheet = ACCELERATORS[name]
    found = dots(svg)
    assert len(found) == sum(1 for layer in report.layers if layer.ops.flops)
    for layer in report.layers:
        if layer.ops.flops:
            intensity = layer.ops.flops / layer.moved_bytes
            wanted = min(sheet.tflops[dtype] * 1e12, intensity * sheet.gb_s * 1e9)
            assert found[layer.name] == pytest.approx((wanted, intensity), rel=6e-3)
    words = words_of(svg)
    assert "Bounds, not measurements" in words
    assert sheet.says in words
    assert f"products in {dtype}" in words


def test_int8_layers_use_the_peak_of_int8() -> None:
    report = analyze("resnet18", dtype="int8")
    roofs = roofline.roofs_of(machine_of("a100"), "int8", 1)
    peaks = {roofs.peak(layer).dtype for layer in report.layers if layer.ops.mac}
    assert peaks == {"int8"}
    assert "624 TOP/s, products in int8" in words_of(roofline.attainable_roofline(report, roofs))


def test_tf32_products_of_fp32_tensors() -> None:
    report = analyze("resnet18")
    roofs = roofline.roofs_of(machine_of("a100"), "tf32", 1)
    assert {roofs.peak(layer).flops.best for layer in report.layers} == {156e12}


def test_a_dtype_without_a_peak_is_refused_with_the_list() -> None:
    with pytest.raises(UsageError, match=r"dtype fp32: Google TPU v4 has no peak.* bf16, int8"):
        roofline.roofs_of(machine_of("tpu-v4"), "fp32", 1)


def test_a_run_without_roofs_says_so() -> None:
    report = analyze("lenet5")
    for machine in (None, machine_of("tpu-v4")):
        found = measured(report, machine)
        roofs = roofline.roofs_of_run(report, found)
        assert roofs is None
        words = words_of(roofline.measured_roofline(report, found, roofs))
        assert "No roofs:" in words
        assert ("--on NAME" if machine is None else "bf16, int8") in words


def test_other_runs_of_a_file_are_told() -> None:
    report = analyze("lenet5")
    found = measured(report, HERE, runs=2)
    for svg in (
        pictures.time_bars(report, found),
        roofline.measured_roofline(report, found, roofline.roofs_of_run(report, found)),
    ):
        assert "Not drawn: engine with fusion off" in words_of(svg)


def test_more_ops_than_colours_share_the_last() -> None:
    report = long_names()
    svg = roofline.attainable_roofline(report, roofline.roofs_of(HERE, "fp32", 2))
    count = len({layer.op for layer in report.layers if layer.ops.flops})
    assert f"{count - len(COLOURS) + 1} other ops" in words_of(svg)


@pytest.mark.parametrize("text", ["short", "a" * 300, "encoder.layers." * 30 + "mlp", "漢字" * 90])
@pytest.mark.parametrize("room", [10, 60, 300])
def test_shortened_texts_fit_and_show_it(text: str, room: float) -> None:
    short = shortened(text, room, 11)
    assert text_width(short, 11) <= max(room, text_width("…", 11))
    assert short == text or "…" in short
    assert all(text_width(line, 11) <= room or line == "…" for line in wrapped(text, room, 11))


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAYERSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_the_command_without_a_machine_tells_what_to_run(own_cache: Path, capsys: Captured) -> None:
    assert run(["plot", "lenet5", "--of", "roofline"]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.count("\n") == 1
    assert "layerscope machine" in err
    assert "--on NAME" in err


def test_the_command_takes_the_measured_roofs_or_a_data_sheet(
    own_cache: Path, capsys: Captured
) -> None:
    cache.keep("machine", identity(), HERE)
    for args in ([], ["--on", "this"]):
        assert run(["plot", "lenet5", "--of", "roofline", *args]) == 0
        assert HERE.cpu in capsys.readouterr().out
    assert run(["plot", "lenet5", "--on", "h100", "--dtype", "bf16"]) == 0
    assert "989 TFLOP/s, products in bf16" in capsys.readouterr().out
    assert run(["plot", "lenet5", "--on", "a100", "--dtype", "tf32"]) == 0
    assert "156 TFLOP/s, products in tf32" in capsys.readouterr().out


@pytest.mark.parametrize(
    "args, said",
    [
        (["--on", "tpu-v4"], "no peak for it; --dtype can be bf16, int8"),
        (["--on", "a1000"], "did you mean a100"),
        (["--on", "a100", "--of", "memory"], "--on applies to --of roofline"),
        (["--of", "time"], "layerscope measure lenet5 -o run.json"),
        (["-o", "a.gif"], "choose from .svg, .png"),
    ],
)
def test_wrong_arguments_of_the_command(args: list[str], said: str, capsys: Captured) -> None:
    assert run(["plot", "lenet5", *args]) == 2
    assert said in capsys.readouterr().err


def test_a_roofline_names_its_machine() -> None:
    report = analyze("lenet5")
    roofs = roofline.roofs_of(machine_of("a100"), report.float_dtype, 1)
    words = words_of(roofline.attainable_roofline(report, roofs))
    assert "Roofs of NVIDIA A100 SXM 80 GB, data sheet." in words
    assert "DrawnRoofs" not in words
