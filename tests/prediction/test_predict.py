"""Predictions: the local model, the fused rows, fitted rates, the command. No absolute time."""

from __future__ import annotations

from math import log2
from pathlib import Path
from typing import Any

import msgspec
import pytest

import layerscope
from layerscope.api.networks import analyze
from layerscope.api.timing import predict
from layerscope.cli import run as command
from layerscope.errors import UnknownName, UsageError
from layerscope.prediction import calibration, microbenchmarks
from layerscope.prediction.calibration import cached_calibration, calibrate
from layerscope.prediction.coefficients import FITTED
from layerscope.prediction.features import amounts, features_of
from layerscope.prediction.fusion import contiguous_run, fused_rows
from layerscope.prediction.layout import layouts_of
from layerscope.prediction.nearest import Roofs, RowSample, fit
from layerscope.prediction.other_machines import machines, scaled
from layerscope.prediction.row_features import RowWork, work_of
from layerscope.prediction.row_times import (
    around,
    end_to_end,
    layers_and_reorders,
    readers_of,
    row_times,
    together,
)
from layerscope.report import Report
from layerscope.report.build import report_of
from layerscope.report.measurement import LayerTime, MemoryUse, Run, Timing
from tests.prediction.engine_rules import blocks_of

ROOFS = Roofs(100e9, 10e9, 1e-6)
RULES = blocks_of(16)


def product(m: float, n: float, efficiency: float, net: int) -> RowSample:
    """A made-up product that reaches a share of the roof."""
    flops = 2 * m * n * 64
    work = RowWork("conv", flops, 0.0, 0.0, (log2(m), log2(n)))
    return RowSample(work, flops / ROOFS.flops_s / efficiency, net)


def test_a_local_model_follows_a_smooth_efficiency() -> None:
    """Efficiency that grows with a size is found again between the samples, not only at them."""
    samples = [
        product(2**a, 2**b, min(0.2 + 0.05 * a, 0.9), net=a)
        for a in range(4, 14) for b in range(4, 10)
    ]  # fmt: skip
    model = fit(samples, ROOFS)
    asked = product(2**8.5, 2**6.5, 0.2 + 0.05 * 8.5, net=99)
    found, error = model.guess(asked.work)
    assert found / asked.time_s == pytest.approx(1, abs=0.06)
    assert 0 < error < 0.3


def test_an_outlier_moves_it_little() -> None:
    samples = [product(2**a, 2**b, 0.5, net=a) for a in range(4, 12) for b in range(4, 10)]
    slow = msgspec.structs.replace(samples[20], time_s=samples[20].time_s * 4)
    model = fit([*samples[:20], slow, *samples[21:]], ROOFS)
    found, _ = model.guess(samples[20].work)
    assert found / samples[20].time_s == pytest.approx(1, abs=0.25)


def test_a_kind_that_nobody_measured_has_a_wide_band() -> None:
    model = fit([product(2**a, 64, 0.5, net=a) for a in range(4, 12)], ROOFS)
    seconds, error = model.guess(RowWork("strange", 1e6, 1e6, 0.0, (1.0,)))
    assert seconds > 0
    assert error >= 0.5


@pytest.mark.parametrize(("first", "view", "second"), [
    ((0, 2, 1), None, None), ((0, 1, 2), None, None), ((2, 1, 0), None, None),
    ((0, 2, 1), (2, 5, 2, 3), (0, 3, 2, 1)), ((0, 2, 1), (2, 5, 3, 2), (0, 2, 3, 1)),
    ((0, 2, 1), (2, 5, 6), (0, 2, 1)), ((2, 0, 1), (5, 2, 2, 3), (1, 2, 3, 0)),
    ((1, 0, 2), (2, 3, 2, 5), (2, 0, 1, 3)), ((0, 2, 1), (10, 6), (1, 0)),
])  # fmt: skip
def test_axes_exchanged_twice_are_exchanged_once(
    first: tuple[int, ...], view: tuple[int, ...] | None, second: tuple[int, ...] | None
) -> None:
    """Runs of neighbours that stay neighbours, against numbers that were moved."""
    import numpy  # noqa: TID251

    b = layerscope.Builder("exchanged")
    x = b.permute(b.input("data", (2, 6, 5)), first)
    moved: Any = numpy.arange(60).reshape(2, 6, 5).transpose(first)
    if view is not None and second is not None:
        x = b.permute(b.reshape(x, view), second)
        moved = moved.reshape(view).transpose(second)
    report = analyze(b.build(x))
    flat = moved.ravel()
    breaks = [n for n in range(1, 60) if flat[n] != flat[n - 1] + 1] + [60]
    if view == (10, 6):  # joins axes: the engine exchanges twice
        assert len(fused_rows(report, RULES)) == 2
        return
    assert len(fused_rows(report, RULES)) == 1
    assert contiguous_run(fused_rows(report, RULES)[0]) == min(
        b - a for a, b in zip([0, *breaks[:-1]], breaks, strict=True)
    )


def test_what_does_not_run_in_blocks_is_judged_by_its_like() -> None:
    """A layer of 58 channels and one of 64 are about the same work, and five times apart."""
    report = analyze("shufflenet_v2_x1_0")
    layouts = layouts_of(report, fused_rows(report, RULES), RULES)
    readers = readers_of(report)
    works = {
        row[0].name: work_of(row, report, readers, layouts) for row in fused_rows(report, RULES)
    }
    plain, blocked = works["stage2.1.branch2.3"], works["stage3.1.branch2.3"]
    assert plain.kind == blocked.kind == "depthwise"
    assert plain.coordinates[-1] - blocked.coordinates[-1] >= 4


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "densenet121"])
def test_no_layer_is_in_two_rows(name: str) -> None:
    report = analyze(name)
    names = [layer.name for row in fused_rows(report, RULES) for layer in row]
    assert len(names) == len(set(names))
    convs = [sum(layer.op == "conv" for layer in row) for row in fused_rows(report, RULES)]
    assert max(convs) == 1
    assert sum(convs) == sum(layer.op == "conv" for layer in report.layers)


def kinds_of(report: Report) -> set[str]:
    """Kinds of the rows of a network, in blocks of 16."""
    rows, readers = fused_rows(report, RULES), readers_of(report)
    layouts = layouts_of(report, rows, RULES)
    return {work_of(row, report, readers, layouts).kind for row in rows}


def test_work_tells_kinds_apart() -> None:
    kinds = kinds_of(analyze("mobilenet_v2"))
    bounded = {"stem and bounds", "conv 1x1 and bounds", "depthwise and bounds"}
    assert bounded | {"conv 1x1", "linear of a vector"} <= kinds
    assert "conv" not in kinds


def test_micro_networks_are_many_kinds_and_no_known_network() -> None:
    graphs = list(microbenchmarks.networks(RULES))
    kinds = {kind for graph in graphs for kind in kinds_of(report_of(graph))}
    assert {"conv", "conv 1x1", "stem", "depthwise", "grouped", "linear", "attention"} <= kinds
    known_names = set(layerscope.zoo.NAMES) if hasattr(layerscope, "zoo") else set()
    assert not {graph.name for graph in graphs} & known_names
    assert [graph.name for graph in microbenchmarks.networks(RULES)] == [
        graph.name for graph in graphs
    ]


def test_calibration_is_kept_and_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAYERSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(calibration, "PASSES", 1)
    with pytest.raises(UsageError, match="machine --calibrate"):
        predict("lenet5", threads=1)
    few = [
        graph for graph in microbenchmarks.networks(RULES) if graph.name in ("light7_0", "chain7_1")
    ]
    made = calibrate(threads=1, graphs=few)
    assert cached_calibration("onnxruntime", 1) == made
    assert made.rules == calibration.engine_rules("onnxruntime")
    assert made.limits.flops_s["fp32"] > 0
    found = predict("resnet18", threads=1)
    assert found.total_s == pytest.approx(sum(row.time_s or 0.0 for row in found.rows))
    assert found.high_s is not None
    assert found.low_s < found.total_s < found.high_s
    twice = predict("resnet18", threads=1, batch=4)
    assert twice.total_s / found.total_s > 1


def test_a_calibration_of_another_form_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files of before have no rules of the engine, or mean other things by the same fields."""
    from layerscope.engines import cache
    from layerscope.engines.onnxruntime import version

    monkeypatch.setenv("LAYERSCOPE_CACHE", str(tmp_path))
    sample = product(64, 64, 0.5, net=1)
    made = calibration.Calibration("cpu", "onnxruntime", version(), 1, (sample,), 1.0, 1.0, "now",
                                   form=calibration.FORM)  # fmt: skip
    key = calibration._key("onnxruntime", 1)
    cache.keep("calibration", key, made)
    assert cached_calibration("onnxruntime", 1) == made
    for other in (
        msgspec.structs.replace(made, form=calibration.FORM - 1),
        msgspec.structs.replace(made, engine_version="0"),
    ):
        cache.keep("calibration", key, other)
        assert cached_calibration("onnxruntime", 1) is None


def test_fitted_rates_are_of_the_kinds_there_are() -> None:
    report = analyze("resnet50")
    total: dict[str, float] = {}
    for layer in report.layers:
        for key, amount in amounts(features_of(layer)).items():
            total[key] = total.get(key, 0.0) + amount
    for machine in FITTED.values():
        assert set(total) & set(machine.rates)
        assert min(machine.rates.values()) > 0
        assert 0 < machine.error < 0.3
    macs = sum(amount for key, amount in total.items() if key.endswith(" macs"))
    assert macs == report.totals.macs


def test_facts_do_not_depend_on_the_number_type() -> None:
    wide = [features_of(layer) for layer in analyze("resnet18").layers]
    half = [features_of(layer) for layer in analyze("resnet18", dtype="fp16").layers]
    assert wide == half


def test_a_larger_batch_is_quicker_an_image() -> None:
    one, many = (predict("resnet50", on="rtx4090", batch=n) for n in (1, 256))
    assert many.total_s > one.total_s
    assert many.total_s / 256 < one.total_s
    assert sum(row.time_s or 0.0 for row in many.rows) == pytest.approx(many.total_s)


def test_machines_that_were_not_fitted_are_scaled() -> None:
    assert {"rtx3090", "i7-12700h", "a100"} <= set(machines())
    slow, quick = scaled("t4", "fp16"), scaled("h100", "fp16")
    assert all(slow[key] >= quick[key] for key in slow)
    found = predict("resnet50", on="a100", batch=64)
    assert found.error > FITTED["rtx4090"].error
    assert any("not fitted" in note for note in found.notes)
    with pytest.raises(UnknownName, match="did you mean"):
        predict("resnet50", on="a1000")
    with pytest.raises(UsageError, match="threads"):
        predict("resnet50", on="a100", threads=2)


def test_the_command_prints_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("text", "markdown", "csv", "json"):
        assert command(["predict", "resnet18", "--on", "rtx3090", "-b", "8", "--as", form]) == 0
        assert "layer1.0.conv1" in capsys.readouterr().out
    assert command(["predict", "resnet18", "--on", "rtx3090", "--sort", "--top", "3"]) == 0
    out = capsys.readouterr().out
    assert "more rows" in out
    assert "68 % interval" in out
    assert command(["predict", "resnet18", "--on", "nothing"]) == 2


@pytest.mark.parametrize("what", ["memory", "activations", "costs", "params"])
def test_plots_of_a_network(what: str, tmp_path: Path) -> None:
    file = tmp_path / "plot.svg"
    assert command(["plot", "lenet5", "--of", what, "-o", str(file)]) == 0
    text = file.read_text(encoding="utf-8")
    assert text.startswith("<svg")
    from xml.etree import ElementTree

    ElementTree.fromstring(text)


def test_plots_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from xml.etree import ElementTree

    run = tmp_path / "run.json"
    assert command(["measure", "lenet5", "-t", "1", "-o", str(run)]) == 0
    for what in ("roofline", "time"):
        file = tmp_path / f"{what}.svg"
        assert command(["plot", str(run), "--of", what, "-o", str(file)]) == 0
        root = ElementTree.fromstring(file.read_text(encoding="utf-8"))
        marks = [each for each in root.iter() if each.get("aria-roledescription")]
        assert len(marks) > 10
    assert command(["plot", str(run), "--on", "a100"]) == 0
    assert "NVIDIA A100" in capsys.readouterr().out
    assert command(["plot", str(run), "--batch", "2"]) == 2
    assert "does not apply to a measured run" in capsys.readouterr().err
    assert command(["plot", str(run), "-o", str(tmp_path / "a.gif")]) == 2


def test_a_png_needs_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert command(["plot", "lenet5", "-o", str(tmp_path / "a.png")]) == 4
    assert "layerscope[plot]" in capsys.readouterr().err


def run_of_rows(*repeats: tuple[float, float, float], whole: float = 0.0) -> Run:
    """A run of one row, the reorder after it and what is in neither, in seconds a repeat."""
    row, reorder, rest = zip(*repeats, strict=True)
    ends = tuple(whole or sum(each) for each in repeats)
    timing = Timing(1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, None, None, None, ends)
    rows = (
        LayerTime("conv", "layer", ("conv", "relu"), 0.0, 0.0, 0.0, runs_s=row),
        LayerTime("reorder", "layout", ("relu",), 0.0, 0.0, 0.0, runs_s=reorder),
        LayerTime("rest", "unattributed", (), 0.0, 0.0, 0.0, runs_s=rest),
    )
    return Run("onnxruntime", "1", 1, "on", timing, rows, MemoryUse(None, None, 0))


def test_rows_take_the_least_of_all_repeats() -> None:
    """A spell during which the machine is slow, and a single slow repeat, leave no trace."""
    slow = run_of_rows((8.0, 2.0, 4.0), (9.0, 2.5, 4.0))
    quick = run_of_rows((5.0, 1.5, 3.0), (4.0, 1.0, 2.0), (40.0, 1.25, 2.5))
    assert layers_and_reorders([slow, quick]) == ({("conv", "relu"): 4.0}, {("relu",): 1.0})
    assert row_times([slow, quick]) == {("conv", "relu"): 5.0}
    assert end_to_end([slow, quick]) == 7.0
    assert around([slow, quick]) == 2.0


def test_rows_are_not_at_their_best_all_at_once() -> None:
    """Rows of 4 and 1 seconds, which no repeat had together: the quickest one took 6."""
    apart = run_of_rows((4.0, 2.0, 0.5), (5.0, 1.0, 0.5))
    assert together([[apart]]) == pytest.approx(6 / 5)
    assert together([[run_of_rows((4.0, 1.0, 0.5))]]) == 1
    assert together([]) == 1
