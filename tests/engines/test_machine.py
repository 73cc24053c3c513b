"""Roofs: what is measured is kept, and a row is under the right one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from layerscope.api.networks import analyze
from layerscope.cli import run as command
from layerscope.engines import machine as engine
from layerscope.engines import measuring
from layerscope.engines.accelerators import ACCELERATORS, machine_of
from layerscope.engines.cache import folder, keep, load
from layerscope.engines.measuring import MeasureRequest, NetworkSource, measure
from layerscope.report.measurement import Level, Machine, Peak, Rate
from layerscope.report.timed import Moved, Roofline


def rate(value: float) -> Rate:
    return Rate(value, value, 5)


MACHINE = Machine(
    "test", 2,
    (Peak("fp32", 1, rate(100e9), "us"), Peak("fp32", 2, rate(200e9), "us")),
    (Level("L2", 2, 1_000_000, rate(100e9)), Level("L3", 2, 30_000_000, rate(50e9)),
     Level("DRAM", 2, 0, rate(10e9))),
)  # fmt: skip


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAYERSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(engine, "SECONDS", 0.01)
    monkeypatch.setattr(engine, "LEAST", 2)
    monkeypatch.setattr(engine, "MOST_BUFFER", 1 << 24)
    monkeypatch.setattr(engine, "PRODUCTS", ((64, 64, 64), (256, 256, 256)))


@pytest.mark.usefixtures("quick")
def test_a_machine_is_measured_and_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert engine.cached_machine() is None
    assert command(["machine", "--as", "json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=Machine)
    assert found == engine.cached_machine()
    assert {peak.dtype for peak in found.peaks} >= {"fp32", "fp64"}
    assert {level.name for level in found.levels} >= {"DRAM"}
    for one in (*(p.flops for p in found.peaks), *(v.rate for v in found.levels)):
        assert 0 < one.median <= one.best
        assert 0 <= one.spread < 1
    assert command(["machine"]) == 0
    assert "products in fp32" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("macs", "moved", "weights", "name"),
    [
        (10**9, Moved(1000, 1000, 0), 0, "compute"),
        (1, Moved(400_000, 400_000, 0), 0, "L2"),
        (1, Moved(10_000_000, 0, 0), 0, "L3"),
        (1, Moved(100_000_000, 0, 0), 0, "DRAM"),
        (1, Moved(1_000_000, 0, 990_000), 2_000_000, "L3"),
        (1, Moved(1_000_000, 0, 990_000), 200_000_000, "DRAM"),
    ],
)
def test_the_roof_is_the_limit_that_takes_longest(
    macs: int, moved: Moved, weights: int, name: str
) -> None:
    roof = Roofline(MACHINE, 2, "fp32", weights).roof(macs, moved, 1.0)
    assert roof is not None
    assert roof.name == name


def test_a_roof_is_a_share_of_the_time() -> None:
    roof = Roofline(MACHINE, 2, "fp32", 0).roof(10**9, Moved(0, 0, 0), 0.02)
    assert roof is not None
    assert roof.share == pytest.approx(2e9 / 200e9 / 0.02)
    assert Roofline(MACHINE, 2, "fp32", 0).roof(0, Moved(0, 0, 0), 1.0) is None


def test_threads_find_their_nearest_limit() -> None:
    four, one = MACHINE.peak("fp32", 4), MACHINE.peak("fp32", 1)
    assert four is not None
    assert four.threads == 2
    assert one is not None
    assert one.threads == 1
    assert MACHINE.peak("int4", 1) is None


def test_data_sheets_are_of_some_sense(capsys: pytest.CaptureFixture[str]) -> None:
    for name, sheet in ACCELERATORS.items():
        assert sheet.gb_s > 0
        assert min(sheet.tflops.values()) > 0
        wide = sheet.tflops.get("fp32")
        half = sheet.tflops.get("fp16")
        assert wide is None or half is None or half >= wide, name
        assert machine_of(name).peaks
    assert command(["machine", "--list"]) == 0
    assert "a100" in capsys.readouterr().out
    assert command(["machine", "--on", "a100"]) == 0
    assert "data sheet" in capsys.readouterr().out
    assert command(["machine", "--on", "a1000"]) == 2
    assert "did you mean" in capsys.readouterr().err
    assert command(["machine", "--on", "a100", "--list"]) == 2


def test_the_cache_is_where_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAYERSCOPE_CACHE", str(tmp_path / "deep" / "er"))
    assert load("thing", "me", int) is None
    assert keep("thing", "me", 7)
    assert load("thing", "me", int) == 7
    assert load("thing", "you", int) is None
    assert load("thing", "me", str) is None
    monkeypatch.setenv("LAYERSCOPE_CACHE", "/proc/nowhere")
    assert keep("thing", "me", 7) is None
    monkeypatch.delenv("LAYERSCOPE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folder() in (str(tmp_path / "layerscope"), folder())


@pytest.mark.usefixtures("quick")
def test_a_roof_that_rows_break_through_is_measured_again() -> None:
    """A machine that was busy when it was measured has roofs that are too low."""
    low = Machine(
        engine.identity(), 1,
        (Peak("fp32", 1, rate(1.0), "us"), Peak("fp64", 1, rate(7.0), "us")),
        (Level("L2", 1, 1 << 20, rate(1.0)), Level("DRAM", 1, 0, rate(1e15))),
    )  # fmt: skip
    keep("machine", engine.identity(), low)
    found = measure(analyze("lenet5"), MeasureRequest(threads=1), NetworkSource()).machine
    assert found is not None
    assert found == engine.cached_machine()
    peaks = {(peak.dtype, peak.threads): peak.flops.best for peak in found.peaks}
    assert peaks["fp32", 1] > 1e6
    assert peaks["fp64", 1] == 7.0  # of no use here, and left alone
    levels = {level.name: level.rate.best for level in found.levels}
    assert levels["L2"] > 1e6
    assert levels["DRAM"] == 1e15  # the higher of both


@pytest.mark.usefixtures("quick")
def test_rows_above_a_roof_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    low = Machine(engine.identity(), 1, (Peak("fp32", 1, rate(1.0), "us"),), ())
    keep("machine", engine.identity(), low)
    monkeypatch.setattr(measuring, "raised", lambda machine, threads, dtype: machine)
    run = measure(analyze("lenet5"), MeasureRequest(threads=1), NetworkSource()).runs[0]
    assert any("above a roof" in note and "machine --again" in note for note in run.notes)


@pytest.mark.parametrize(
    "asked", [["machine", "--calibrate"], ["predict", "lenet5"], ["measure", "lenet5"]]
)
@pytest.mark.parametrize("threads", ["0", "-1"])
def test_no_threads_at_all_are_refused(
    asked: list[str], threads: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command([*asked, "--threads", threads]) == 2
    assert f"--threads {threads}, expected 1 to 1,024" in capsys.readouterr().err


def test_a_data_sheet_has_no_threads_median_or_spread(capsys: pytest.CaptureFixture[str]) -> None:
    for name, sheet in ACCELERATORS.items():
        assert command(["machine", "--on", name]) == 0
        out = capsys.readouterr().out
        assert out.splitlines()[0].split() == ["limit", "peak"]
        assert len(out.splitlines()) == 2 + len(sheet.tflops) + 1 + 2
        assert f"{sheet.says} · data sheet" in out
        assert command(["machine", "--on", name, "--as", "json"]) == 0
        text = capsys.readouterr().out
        found = json.loads(text)
        assert {peak["dtype"]: peak["flops"]["best"] for peak in found["peaks"]} == {
            dtype: pytest.approx(value * 1e12) for dtype, value in sheet.tflops.items()
        }
        assert not {"threads", "median", "runs", "cores", "size_bytes"} & set(
            re.findall(r'"(\w+)":', text)
        )
