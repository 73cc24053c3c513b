"""Energy counters in a folder of their own: which are summed, wraparound, missing rights."""

from __future__ import annotations

from pathlib import Path

import pytest

from layerscope.engines import clock
from layerscope.engines.attribution import energy_of
from layerscope.engines.clock import Clock, RunSample
from layerscope.engines.energy import (
    EnergyReading,
    Zone,
    locked,
    read_counters,
    source_text,
    zones_of,
)

RANGE = 262_143_328_850


def zone(root: Path, folder: str, name: str, microjoules: int | None = 0) -> Path:
    path = root / folder
    path.mkdir()
    (path / "name").write_text(f"{name}\n")
    (path / "max_energy_range_uj").write_text(f"{RANGE}\n")
    if microjoules is not None:
        (path / "energy_uj").write_text(f"{microjoules}\n")
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two packages with parts, the whole platform, and the same package again as mmio."""
    zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    zone(tmp_path, "intel-rapl:0:0", "core", 900_000)
    zone(tmp_path, "intel-rapl:0:1", "dram", 200_000)
    zone(tmp_path, "intel-rapl:1", "package-1", 5_000_000)
    zone(tmp_path, "intel-rapl:2", "psys", 50_000_000)
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", 1_000_000)
    (tmp_path / "intel-rapl").mkdir()
    return tmp_path


def test_packages_and_their_memory_are_summed_once(root: Path) -> None:
    zones = zones_of(str(root))
    assert [each.name for each in zones] == ["package-0", "dram", "package-1"]
    before = read_counters(zones)
    assert before == EnergyReading((1_000_000, 200_000, 5_000_000))
    (root / "intel-rapl:0" / "energy_uj").write_text("3000000")
    (root / "intel-rapl:0:1" / "energy_uj").write_text("700000")
    assert before.joules_until(read_counters(zones), zones) == 2.5
    assert source_text(zones) == (
        "mean of the timed runs by RAPL counters (package-0, dram, package-1)"
    )


def test_a_counter_that_starts_again_goes_on(root: Path) -> None:
    zones = (Zone("package-0", "", RANGE),)
    before, after = EnergyReading((RANGE - 1_000_000,)), EnergyReading((2_000_000,))
    assert before.joules_until(after, zones) == 3.0
    assert before.joules_until(after, (Zone("package-0", "", None),)) is None
    assert EnergyReading((RANGE + 1,)).joules_until(after, zones) is None
    assert before.joules_until(EnergyReading((None,)), zones) is None
    assert EnergyReading(()).joules_until(EnergyReading(()), ()) is None


def test_without_counters_there_is_no_energy(tmp_path: Path) -> None:
    assert zones_of(str(tmp_path / "missing")) == ()
    assert zones_of(str(tmp_path)) == ()
    assert not locked(())


@pytest.mark.parametrize("content", [None, "", "many", "-5", "1e6", "\x00", "5" * 200])
def test_a_counter_that_cannot_be_read_is_unknown(content: str | None, tmp_path: Path) -> None:
    path = zone(tmp_path, "intel-rapl:0", "package-0", None)
    if content is not None:
        (path / "energy_uj").write_text(content)
    zones = zones_of(str(tmp_path))
    reading = read_counters(zones)
    assert reading == EnergyReading((None,))
    assert locked(zones)
    assert reading.joules_until(reading, zones) is None


def test_the_clock_reads_them_around_a_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zones = zones_of(str(root))
    monkeypatch.setattr(clock, "zones_of", lambda: zones)
    running = Clock()
    (root / "intel-rapl:1" / "energy_uj").write_text("9000000")
    assert running.stop().joules == 4.0
    monkeypatch.setattr(clock, "zones_of", lambda: ())
    assert Clock().stop().joules is None


def test_energy_is_that_of_the_timed_runs() -> None:
    samples = [RunSample(1.0, 1.0, 0.0, 30.0), RunSample(3.0, 3.0, 0.0, 50.0)]
    found = energy_of(samples, 0.5, None)
    assert found is not None
    assert (found.watts, found.joules, found.bound) == (20.0, 10.0, False)
    assert "RAPL" in found.source
    given = energy_of(samples, 0.5, 100.0)
    assert given is not None
    assert (given.joules, given.source) == (50.0, "assumed by --power")
    assert energy_of([*samples, RunSample(1.0, 1.0, 0.0)], 0.5, None) is None
    assert energy_of([RunSample(1e-4, 1e-4, 0.0, 0.0)], 1e-4, None) is None
