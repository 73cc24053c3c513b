"""Plots: what they leave out is said, rooflines have roofs, and files are written by suffix."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from layerscope import Builder, analyze, predict
from layerscope.cli import run
from layerscope.engines import cache
from layerscope.engines.accelerators import ACCELERATORS, machine_of
from layerscope.engines.machine import identity
from layerscope.errors import MissingExtra, MissingPage, UsageError
from layerscope.graph.serialize import to_plain
from layerscope.plot import PLOTS, html_page
from layerscope.plot.activations import MOST, activations
from layerscope.plot.chart import MIME, SUFFIXES, Chart
from layerscope.plot.memory import memory
from layerscope.plot.roofline import attainable_roofline, measured_roofline
from layerscope.plot.roofs import roofs_of, roofs_of_run
from layerscope.plot.text_width import shortened, text_width, wrapped
from layerscope.plot.times import times
from layerscope.report.measurement import Measurement
from tests.plot.drawings import HERE, Spec, long_names, measured, said, values
from tests.report.test_bounds import odd

Captured = pytest.CaptureFixture[str]


def test_bars_tell_what_they_leave_out() -> None:
    report = analyze("resnet50")
    words = said(activations(report))
    sizes = sorted((layer.activation_bytes for layer in report.layers), reverse=True)
    rest = sum(sizes[MOST:])
    assert len(sizes) == 175
    assert f"150 more layers: {rest / sum(sizes):.1%} of the activations" in words
    found = measured(report, None)
    seconds = sorted((row.time_s or 0.0 for row in found.runs[0].rows), reverse=True)
    share = sum(seconds[MOST:]) / sum(seconds)
    assert f"151 more rows: {share:.1%} of the time" in said(times(report, found))
    assert [row["value"] for row in values(times(report, found))] == seconds[:MOST]


def test_a_plot_of_all_layers_leaves_none_out() -> None:
    report = analyze("lenet5")
    assert len(report.layers) < MOST
    assert "more rows" not in said(times(report, measured(report, None)))
    views = sum(1 for layer in report.layers if not layer.activation_bytes)
    words = said(activations(report))
    assert "of the activations" not in words
    assert views == 0 or f"{views} more layer" in words


def test_unknown_layers_are_told() -> None:
    report = analyze(odd())
    assert "Activations of 1 layer are unknown" in said(activations(report))
    assert "≥" in said(activations(report))
    assert "≥" in said(memory(report))
    words = said(attainable_roofline(report, roofs_of(HERE, "fp32", 2)))
    assert "1 layer with unknown figures" in words


def roof_texts(spec: Spec) -> str:
    return " ".join(line["text"] for line in values(spec, "roofs"))


@pytest.mark.parametrize("name, dtype", [("a100", "fp16"), ("a100", "fp32"), ("tpu-v4", "bf16")])
def test_layers_without_a_run_are_at_what_is_attainable(name: str, dtype: str) -> None:
    report = analyze("resnet50", dtype=dtype)
    spec = attainable_roofline(report, roofs_of(machine_of(name), dtype, 1))
    sheet = ACCELERATORS[name]
    found = {dot["name"]: (dot["y"], dot["x"]) for dot in values(spec, "dots")}
    assert len(found) == sum(1 for layer in report.layers if layer.ops.flops)
    for layer in report.layers:
        if layer.ops.flops:
            intensity = layer.ops.flops / layer.moved_bytes
            wanted = min(sheet.tflops[dtype] * 1e12, intensity * sheet.gb_s * 1e9)
            assert found[layer.name] == pytest.approx((wanted, intensity))
    assert "Bounds, not measurements" in said(spec)
    assert sheet.says in said(spec)
    assert f"products in {dtype}" in roof_texts(spec)


def test_int8_layers_use_the_peak_of_int8() -> None:
    report = analyze("resnet18", dtype="int8")
    roofs = roofs_of(machine_of("a100"), "int8", 1)
    peaks = {roofs.peak(layer).dtype for layer in report.layers if layer.ops.mac}
    assert peaks == {"int8"}
    assert "624 TOP/s, products in int8" in roof_texts(attainable_roofline(report, roofs))


def test_tf32_products_of_fp32_tensors() -> None:
    report = analyze("resnet18")
    roofs = roofs_of(machine_of("a100"), "tf32", 1)
    assert {roofs.peak(layer).flops.best for layer in report.layers} == {156e12}


def test_a_dtype_without_a_peak_is_refused_with_the_list() -> None:
    with pytest.raises(UsageError, match=r"dtype fp32: Google TPU v4 has no peak.* bf16, int8"):
        roofs_of(machine_of("tpu-v4"), "fp32", 1)


def test_a_run_without_roofs_says_so() -> None:
    report = analyze("lenet5")
    for machine in (None, machine_of("tpu-v4")):
        found = measured(report, machine)
        roofs = roofs_of_run(report, found)
        assert roofs is None
        words = said(measured_roofline(report, found, roofs))
        assert "No roofs:" in words
        assert ("--on NAME" if machine is None else "bf16, int8") in words


def test_other_runs_of_a_file_are_told() -> None:
    report = analyze("lenet5")
    found = measured(report, HERE, runs=2)
    for spec in (
        times(report, found),
        measured_roofline(report, found, roofs_of_run(report, found)),
    ):
        assert "Not drawn: engine with fusion off" in said(spec)


def test_dots_name_their_ops_and_roofs() -> None:
    report = long_names()
    ops = {layer.op for layer in report.layers if layer.ops.flops}
    spec = attainable_roofline(report, roofs_of(HERE, "fp32", 2))
    assert {dot["op"] for dot in values(spec, "dots")} == ops
    assert {dot["kind"] for dot in values(spec, "dots") if dot["op"] != "conv"} == {"others"}
    found = measured(report, HERE)
    dots = values(measured_roofline(report, found, roofs_of_run(report, found)), "dots")
    assert all(dot["roof"].endswith(("of compute", "of L2", "of L3", "of DRAM")) for dot in dots)


@pytest.mark.parametrize("text", ["short", "a" * 300, "encoder.layers." * 30 + "mlp", "漢字" * 90])
@pytest.mark.parametrize("room", [10, 60, 300])
def test_shortened_texts_fit_and_show_it(text: str, room: float) -> None:
    short = shortened(text, room, 11)
    assert text_width(short, 11) <= max(room, text_width("…", 11))
    assert short == text or "…" in short
    assert all(text_width(line, 11) <= room or line == "…" for line in wrapped(text, room, 11))


def test_a_roofline_names_its_machine() -> None:
    report = analyze("lenet5")
    words = said(attainable_roofline(report, roofs_of(machine_of("a100"), report.float_dtype, 1)))
    assert "Roofs of NVIDIA A100 SXM 80 GB, data sheet." in words
    assert "DrawnRoofs" not in words


# Charts of results, in notebooks and in files


def test_results_have_charts() -> None:
    report = analyze("lenet5")
    for what in PLOTS:
        if what == "throughput":  # of a configuration, not of a report
            with pytest.raises(UsageError, match="configuration of a language model"):
                report.plot(what)
            continue
        chart = report.plot(what, on="a100" if what in ("roofline", "time") else None)
        assert repr(chart).startswith("<Chart lenet5")
    assert "activations alive" in repr(report.plot())
    found = measured(report, HERE)
    kept = Measurement(found.network, to_plain(report.graph), 1, "fp32", found.runs, HERE, "0", "")
    assert "engine on 2 threads" in repr(kept.plot())
    assert kept.plot("roofline", on="a100").spec != kept.plot("roofline").spec
    assert "predicted on NVIDIA A100" in repr(predict("lenet5", on="a100").plot())
    with pytest.raises(UsageError, match="needs a measured run"):
        report.plot("time")
    with pytest.raises(UsageError, match="time alone"):
        predict("lenet5", on="a100").plot("memory")


def test_a_notebook_gets_the_specification_and_a_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    chart = analyze("lenet5").plot("costs", theme="dark")
    bundle = chart._repr_mimebundle_()
    assert bundle[MIME] == chart.spec
    assert str(bundle["image/svg+xml"]).startswith("<svg")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.setattr("layerscope.plot.chart.installed", lambda *names: False)
    assert set(chart._repr_mimebundle_()) == {"text/plain", MIME}
    with pytest.raises(MissingExtra, match=r"layerscope\[plot\]"):
        chart.to_png()


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A script in the role of the built one."""
    script = "console.log('a bundle </script> of this test')"
    (tmp_path / "charts.js").write_text(script)
    monkeypatch.setattr(html_page, "BUNDLE", tmp_path / "charts.js")
    return script


MAGIC = {
    ".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF", ".html": b"<!DOCTYPE html>", ".json": b"{"
}  # fmt: skip


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_chart_is_saved_by_its_suffix(suffix: str, bundle: str, tmp_path: Path) -> None:
    path = tmp_path / f"chart{suffix}"
    analyze("lenet5").plot().save(path)
    assert path.read_bytes().startswith(MAGIC[suffix])
    other = tmp_path / f"other{suffix}"
    assert run(["plot", "lenet5", "-o", str(other)]) == 0
    if suffix != ".pdf":  # which has a date in it
        assert other.read_bytes() == path.read_bytes()


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"choose from \.html, \.json, \.svg, \.png, \.pdf"):
        analyze("lenet5").plot().save(tmp_path / "chart.gif")


def test_a_page_holds_the_chart_and_both_themes(bundle: str) -> None:
    chart = analyze("lenet5").plot()
    page = chart.to_html()
    start = page.index('id="layerscope-chart">') + len('id="layerscope-chart">')
    data = json.loads(page[start : page.index("</script>", start)])
    assert data["spec"] == {k: v for k, v in chart.spec.items() if k != "config"}
    assert set(data["themes"]) == {"light", "dark"}
    assert bundle not in page
    assert page.count("</script>") == 2  # the one inside the bundle is escaped
    assert "default-src 'none'" in page
    assert not [word for word in ("src=", "href=") if word in page]
    fixed = analyze("lenet5").plot(theme="dark").to_html()
    assert '"themes":{"dark":' in fixed.replace(" ", "").replace("\n", "")


def test_a_page_prints_hostile_names(bundle: str) -> None:
    b = Builder("</title><script>alert(1)</script>")
    b.conv(b.input("x", (1, 3, 8, 8)), 4, 3, name="<img src=x onerror=alert(1)>\u202e")
    page = analyze(b.build()).plot("costs").to_html()
    assert "<img" not in page
    assert page.count("<script") == 2
    assert page.count("</title>") == 1
    assert "\u202e" not in page


def test_a_page_that_is_not_built_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(html_page, "BUNDLE", tmp_path / "nothing.js")
    assert run(["plot", "lenet5", "-o", str(tmp_path / "x.html")]) == 4
    err = capsys.readouterr().err
    assert "`make page`" in err
    assert err.count("\n") == 1
    with pytest.raises(MissingPage):
        Chart(analyze("lenet5").plot().spec).to_html()


def test_the_command_needs_no_library_for_a_specification(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['vl_convert'] = None\n"
        "from layerscope.cli import run\n"
        "code = run(['plot', 'lenet5', '-o', sys.argv[1]])\n"
        "sys.exit(code or ('numpy' in sys.modules) * 9)"
    )
    path = tmp_path / "x.vl.json"
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(path.read_text())["$schema"].endswith("vega-lite/v6.json")


def test_themes_of_the_command(tmp_path: Path, capsys: Captured) -> None:
    for theme, surface in (("light", "#ffffff"), ("dark", "#14181f")):
        assert run(["plot", "lenet5", "--theme", theme]) == 0
        assert json.loads(capsys.readouterr().out)["config"]["background"] == surface


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
        (["--theme", "pink"], "choose from light, dark"),
        (["--as", "pdf"], "give a file with -o FILE.pdf"),
        (["--of", "time"], "layerscope measure lenet5 -o run.json"),
        (["-o", "a.gif"], "choose from .json, .html, .svg, .png, .pdf"),
    ],
)
def test_wrong_arguments_of_the_command(args: list[str], said: str, capsys: Captured) -> None:
    assert run(["plot", "lenet5", *args]) == 2
    assert said in capsys.readouterr().err
